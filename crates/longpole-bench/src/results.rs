//! What measuring a suite left behind: one document, which `longpole bench run` saves again and again while it measures.
//!
//! It holds every sample with the state of the device beside it, so that any later comparison can start from the samples. Keys are only
//! added within a version, and what was not known is `null`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::protocol::{Device, End, L2, MAX_SAMPLE_PS, Method, Sample, Start, StoppedBy, SuiteInfo, implausible, too_long};

/// The value of `schema` in [`Results`].
pub const RESULTS_SCHEMA: &str = "longpole.bench.results/1";

/// Bytes of the longest document that is read.
pub const MAX_RESULTS_BYTES: u64 = 512 << 20;

/// The state of the sources that were measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    /// The commit.
    pub revision: String,
    /// Whether files differed from it; `None` if that could not be asked.
    pub dirty: Option<bool>,
}

/// Clocks over all samples, in MHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// Median clock of the multiprocessors.
    pub sm_mhz: Option<u32>,
    /// The lowest one seen.
    pub sm_low_mhz: Option<u32>,
    /// The highest one seen.
    pub sm_high_mhz: Option<u32>,
    /// Median clock of the memory.
    pub memory_mhz: Option<u32>,
}

/// One sample, as in the protocol, with the process that took it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of the process of the suite, from 0 in the order in which they ran.
    pub process: u32,
    /// Picoseconds that one run took.
    pub time_ps: u64,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn by the card in milliwatts.
    pub power_mw: Option<u64>,
    /// Why the clocks were below what they could be; `None` if that is not known.
    pub throttle: Option<Vec<String>>,
    /// Whether one of these reasons makes the sample unlike others.
    pub throttled: Option<bool>,
}

/// What was measured of one benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyResult {
    /// Which benchmark.
    pub key: Key,
    /// Bytes that one run has to move.
    pub bytes: Option<u64>,
    /// Floating-point operations of one run.
    pub flops: Option<u64>,
    /// The type of number that they are done on, where the suite says it.
    #[serde(default)]
    pub dtype: Option<String>,
    /// What the second-level cache held.
    pub l2: L2,
    /// What the clock stood around.
    pub method: Method,
    /// Runs that one sample is the mean of.
    pub launches_per_sample: u32,
    /// Sets of buffers taken in turn.
    pub buffers_rotated: u32,
    /// Whether the result was right; `None` if the benchmark cannot tell. Wrong once is wrong.
    pub correct: Option<bool>,
    /// Why the last process took no more samples.
    pub stopped_by: Option<StoppedBy>,
    /// What a reader of the samples should know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// All samples, process after process.
    pub samples: Vec<Measured>,
}

/// A benchmark that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Which one.
    pub key: Key,
    /// Why.
    pub message: String,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// [`RESULTS_SCHEMA`].
    pub schema: String,
    /// When it was begun: UTC, as `2026-01-31T12:34:56Z`.
    pub date: String,
    /// Two documents with the same session were measured in turns: processes of the same number belong together.
    pub session: Option<String>,
    /// Whether everything that was asked for was tried.
    pub complete: bool,
    /// The state of the sources, where there is a repository.
    pub git: Option<Git>,
    /// Which suite.
    pub suite: SuiteInfo,
    /// What was measured on; `None` as long as no process has said so.
    pub device: Option<Device>,
    /// Version of the driver, as in `device`.
    pub driver: Option<String>,
    /// Clocks over all samples.
    pub clocks: Clocks,
    /// What was measured, in the order of measuring.
    pub results: Vec<KeyResult>,
    /// What could not be.
    #[serde(default)]
    pub failed: Vec<Failed>,
}

/// The lower of the middle values.
fn median(mut values: Vec<u32>) -> Option<u32> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

impl Clocks {
    fn of<'s>(samples: impl Iterator<Item = &'s Measured> + Clone) -> Self {
        let sm: Vec<u32> = samples.clone().filter_map(|sample| sample.sm_clock_mhz).collect();
        Self {
            sm_low_mhz: sm.iter().min().copied(),
            sm_high_mhz: sm.iter().max().copied(),
            sm_mhz: median(sm),
            memory_mhz: median(samples.filter_map(|sample| sample.memory_clock_mhz).collect()),
        }
    }
}

impl KeyResult {
    /// A benchmark that begins.
    pub fn begin(start: &Start) -> Self {
        Self {
            key: start.key.clone(),
            bytes: start.bytes,
            flops: start.flops,
            dtype: start.dtype.clone(),
            l2: start.l2,
            method: start.method,
            launches_per_sample: start.launches_per_sample,
            buffers_rotated: start.buffers_rotated,
            correct: None,
            stopped_by: None,
            notes: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Takes a sample of a process.
    pub fn add(&mut self, process: u32, sample: &Sample) {
        self.samples.push(Measured {
            process,
            time_ps: sample.time_ps,
            sm_clock_mhz: sample.sm_clock_mhz,
            memory_clock_mhz: sample.memory_clock_mhz,
            temperature_c: sample.temperature_c,
            power_mw: sample.power_mw,
            throttle: sample.throttle.clone(),
            throttled: sample.throttled,
        });
    }

    /// Takes what the end says.
    pub fn finish(&mut self, end: &End) {
        self.correct = end.correct;
        self.stopped_by = Some(end.stopped_by);
        self.notes.clone_from(&end.notes);
    }

    /// Takes what another process measured of the same benchmark. How it is measured has to stay as it was.
    pub fn merge(&mut self, more: Self) -> Result<(), String> {
        if (self.l2, self.method) != (more.l2, more.method) {
            return Err(format!("{} was measured in another way than before", more.key));
        }
        self.correct = match (self.correct, more.correct) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (first, second) => first.or(second),
        };
        self.stopped_by = more.stopped_by;
        let notes = more.notes.into_iter().filter(|note| !self.notes.contains(note)).collect::<Vec<_>>();
        self.notes.extend(notes);
        self.samples.extend(more.samples);
        Ok(())
    }

    /// Clocks over its samples.
    pub fn clocks(&self) -> Clocks {
        Clocks::of(self.samples.iter())
    }

    /// Number of processes that took its samples.
    pub fn processes(&self) -> usize {
        self.samples.iter().map(|sample| sample.process).collect::<BTreeSet<_>>().len()
    }
}

impl Results {
    /// A document without results.
    pub fn new(date: String, suite: SuiteInfo) -> Self {
        Self {
            schema: RESULTS_SCHEMA.to_owned(),
            date,
            session: None,
            complete: false,
            git: None,
            suite,
            device: None,
            driver: None,
            clocks: Clocks::default(),
            results: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Takes what a process says it measures on. The error says how that differs from what processes before it measured on.
    pub fn on(&mut self, device: &Device) -> Result<(), String> {
        if let Some(first) = &self.device
            && (&first.name, &first.uuid) != (&device.name, &device.uuid)
        {
            return Err(format!("the suite measured on {} and now measures on {}", named(first), named(device)));
        }
        self.driver.clone_from(&device.driver);
        self.device = Some(device.clone());
        Ok(())
    }

    /// Takes what was measured of a benchmark: more samples of one that is there, or a new one. How it is measured has to stay as it was.
    pub fn take(&mut self, result: KeyResult) -> Result<(), String> {
        self.failed.retain(|failed| failed.key != result.key);
        match self.results.iter_mut().find(|known| known.key == result.key) {
            None => self.results.push(result),
            Some(known) => known.merge(result)?,
        }
        self.count_clocks();
        Ok(())
    }

    /// Finds [`clocks`](Self::clocks) anew, for whoever adds to [`results`](Self::results) by hand.
    pub fn count_clocks(&mut self) {
        self.clocks = Clocks::of(self.results.iter().flat_map(|result| &result.samples));
    }

    /// Notes a benchmark that could not be measured; what was measured of it earlier stays.
    pub fn fail(&mut self, key: &Key, message: &str) {
        self.failed.retain(|failed| failed.key != *key);
        self.failed.push(Failed { key: key.clone(), message: message.to_owned() });
    }

    /// What was measured of a benchmark.
    pub fn of(&self, key: &Key) -> Option<&KeyResult> {
        self.results.iter().find(|result| result.key == *key)
    }

    /// What was measured, by key.
    pub fn by_key(&self) -> BTreeMap<&Key, &KeyResult> {
        self.results.iter().map(|result| (&result.key, result)).collect()
    }

    /// Reads a document; the error is a sentence about its content.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        // An array would be taken as the fields in their order.
        if !text.trim_ascii_start().starts_with(b"{") {
            return Err("it holds no results of a benchmark: they are a JSON object".to_owned());
        }
        let results: Self = serde_json::from_slice(text).map_err(|error| format!("it holds no results of a benchmark: {error}"))?;
        if results.schema != RESULTS_SCHEMA {
            let schema: String = results.schema.chars().take(80).collect();
            return Err(format!("its schema is `{schema}`, expected `{RESULTS_SCHEMA}`"));
        }
        let mut seen = BTreeSet::new();
        for result in &results.results {
            if !seen.insert(&result.key) {
                return Err(format!("{} is in it twice", result.key));
            }
            if let Some(what) = implausible(result.bytes, result.flops) {
                return Err(format!("{} has {what}", result.key));
            }
            if let Some(sample) = result.samples.iter().find(|sample| sample.time_ps > MAX_SAMPLE_PS) {
                return Err(format!("a sample of {} takes {}", result.key, too_long(sample.time_ps)));
            }
        }
        Ok(results)
    }
}

fn named(device: &Device) -> String {
    device.uuid.as_ref().map_or_else(|| device.name.clone(), |uuid| format!("{} ({uuid})", device.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(variant: &str, process: u32, times: &[u64]) -> KeyResult {
        let key = Key::parse(&format!("m/ops/gemv/decode/{variant}")).unwrap();
        let start = Start {
            key,
            bytes: Some(8),
            flops: None,
            dtype: None,
            method: Method::Graph,
            launches_per_sample: 2,
            buffers_rotated: 3,
            l2: L2::Cold,
        };
        let mut result = KeyResult::begin(&start);
        for (at, &time_ps) in times.iter().enumerate() {
            let sm = 1000 + at as u32;
            result.samples.push(Measured {
                process,
                time_ps,
                sm_clock_mhz: Some(sm),
                memory_clock_mhz: None,
                temperature_c: None,
                power_mw: None,
                throttle: None,
                throttled: None,
            });
        }
        result
    }

    fn results() -> Results {
        let mut results =
            Results::new("2026-01-31T12:34:56Z".to_owned(), SuiteInfo { name: "example".to_owned(), version: Some("1".to_owned()) });
        results.on(&Device { name: "x".to_owned(), driver: Some("580".to_owned()), ..Device::default() }).unwrap();
        results.take(result("a", 0, &[5, 6, 7])).unwrap();
        results
    }

    #[test]
    fn a_document_comes_back_as_it_was() {
        let results = results();
        let text = serde_json::to_vec(&results).unwrap();
        assert_eq!(Results::parse(&text).unwrap(), results);
        assert_eq!((results.driver.as_deref(), results.clocks.sm_mhz, results.clocks.memory_mhz), (Some("580"), Some(1001), None));
    }

    #[test]
    fn processes_add_up() {
        let mut results = results();
        results.take(result("a", 1, &[5, 6])).unwrap();
        results.take(result("b", 0, &[1])).unwrap();
        assert_eq!((results.results.len(), results.results[0].samples.len(), results.results[0].processes()), (2, 5, 2));
        let warm = KeyResult { l2: L2::Warm, ..result("a", 2, &[1]) };
        assert!(results.take(warm).unwrap_err().contains("in another way"));
        let wrong = KeyResult { correct: Some(false), ..result("b", 1, &[1]) };
        results.take(wrong).unwrap();
        results.take(KeyResult { correct: Some(true), ..result("b", 2, &[1]) }).unwrap();
        assert_eq!(results.results[1].correct, Some(false), "wrong once is wrong");
    }

    #[test]
    fn a_failure_goes_when_it_is_measured_after_all() {
        let mut results = results();
        let key = Key::parse("m/ops/gemv/decode/b").unwrap();
        results.fail(&key, "no");
        results.fail(&key, "still no");
        assert_eq!(results.failed.len(), 1);
        results.take(result("b", 0, &[1])).unwrap();
        assert!(results.failed.is_empty() && results.of(&key).is_some());
    }

    #[test]
    fn another_device_is_refused() {
        let mut results = results();
        let other = Device { name: "x".to_owned(), uuid: Some("GPU-1".to_owned()), ..Device::default() };
        assert_eq!(results.on(&other).unwrap_err(), "the suite measured on x and now measures on x (GPU-1)");
    }

    #[test]
    fn other_texts_are_refused() {
        let fault = |change: &dyn Fn(&mut Results)| {
            let mut results = results();
            change(&mut results);
            Results::parse(&serde_json::to_vec(&results).unwrap()).unwrap_err()
        };
        assert!(fault(&|results| results.schema = "other/1".to_owned()).contains("its schema is `other/1`"));
        assert!(fault(&|results| results.results.push(result("a", 0, &[1]))).contains("is in it twice"));
        assert!(Results::parse(b"{}").unwrap_err().contains("missing field"));
        assert!(Results::parse(b"hello").unwrap_err().contains("no results of a benchmark"));
        assert!(Results::parse(b" []").unwrap_err().contains("they are a JSON object"));
        let endless = fault(&|results| results.results[0].samples[1].time_ps = u64::MAX);
        assert!(endless.contains("a sample of m/ops/gemv/decode/a takes 18446744073709551615 ps, more than a day"), "{endless}");
        assert!(fault(&|results| results.results[0].bytes = Some(u64::MAX)).contains("decode/a has 18446744073709551615 bytes"));
    }
}
