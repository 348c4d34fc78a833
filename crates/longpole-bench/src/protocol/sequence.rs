//! The order of a run's events.

use std::collections::BTreeSet;

use crate::key::Key;

use super::{Event, MAX_AMOUNT, MAX_SAMPLE_PS};

/// Follows a run and says where its events make no sense in their order.
///
/// The device comes before the first benchmark, benchmarks do not overlap and none is run twice, samples are numbered without a gap and have a
/// time that can be one, and the end counts them.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    device: bool,
    done: BTreeSet<Key>,
    open: Option<(Key, u32)>,
}

impl Sequence {
    /// A run of which nothing was seen.
    pub fn new() -> Self {
        Self::default()
    }

    /// The benchmark that has begun and not ended.
    pub fn open(&self) -> Option<&Key> {
        self.open.as_ref().map(|(key, _)| key)
    }

    /// Takes the next event; the error says in a sentence what is wrong with its place, and the event is then as if not seen.
    pub fn accept(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Device { .. } => {
                if let Some((open, _)) = &self.open {
                    return Err(format!("a device is named while {open} runs"));
                }
                self.device = true;
            }
            Event::Start(start) => {
                if let Some((open, _)) = &self.open {
                    return Err(format!("{} starts while {open} runs", start.key));
                }
                if !self.device {
                    return Err(format!("{} starts before the device is named", start.key));
                }
                if start.launches_per_sample == 0 || start.buffers_rotated == 0 {
                    return Err(format!("{} starts with 0 launches or 0 buffers", start.key));
                }
                if let Some(what) = implausible(start.bytes, start.flops) {
                    return Err(format!("{} starts with {what}", start.key));
                }
                if self.done.contains(&start.key) {
                    return Err(format!("{} starts a second time", start.key));
                }
                self.open = Some((start.key.clone(), 0));
            }
            Event::Sample(sample) => match &mut self.open {
                Some((open, next)) if *open == sample.key => {
                    if sample.index != *next {
                        return Err(format!("sample {} of {open} where {next} was due", sample.index));
                    }
                    if let Some(what) = no_time(sample.time_ps) {
                        return Err(format!("sample {next} of {open} takes {what}"));
                    }
                    *next += 1;
                }
                _ => return Err(format!("a sample of {}, which does not run", sample.key)),
            },
            Event::End(end) => match self.open.take() {
                Some((open, seen)) if open == end.key => {
                    if end.samples != seen {
                        self.open = Some((open, seen));
                        return Err(format!("{} ends with {} samples where {seen} were printed", end.key, end.samples));
                    }
                    self.done.insert(open);
                }
                other => {
                    self.open = other;
                    return Err(format!("{} ends without running", end.key));
                }
            },
            Event::Error { key, .. } => {
                if self.open.as_ref().is_some_and(|(open, _)| open == key) {
                    self.open = None;
                }
            }
            Event::Profile { .. } | Event::Peak(_) => {}
        }
        Ok(())
    }
}

/// What is wrong with the bytes and operations of a run, if anything is.
pub(crate) fn implausible(bytes: Option<u64>, flops: Option<u64>) -> Option<String> {
    let found = [(bytes, "bytes", "moves"), (flops, "operations", "does")].into_iter().find(|(amount, ..)| *amount > Some(MAX_AMOUNT));
    found.and_then(|(amount, what, does)| Some(format!("{} {what}, more than any run {does}", amount?)))
}

/// What is wrong with the time of a sample, if anything is.
fn no_time(time_ps: u64) -> Option<String> {
    match time_ps {
        0 => Some("0 ps".to_owned()),
        1..=MAX_SAMPLE_PS => None,
        _ => Some(too_long(time_ps)),
    }
}

/// How a time that is none is called.
pub(crate) fn too_long(time_ps: u64) -> String {
    format!("{time_ps} ps, more than a day")
}

/// A foreign text, short enough for a message.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::{Device, End, L2, Method, Sample, Start, StoppedBy};
    use super::*;

    fn key(variant: &str) -> Key {
        Key::parse(&format!("m/ops/gemv/decode/{variant}")).unwrap()
    }

    fn device() -> Event {
        Event::Device { device: Device { name: "x".to_owned(), ..Device::default() } }
    }

    fn start(variant: &str) -> Event {
        let method = Method::Graph;
        Event::Start(Start {
            key: key(variant),
            bytes: None,
            flops: None,
            dtype: None,
            method,
            launches_per_sample: 1,
            buffers_rotated: 1,
            l2: L2::Warm,
        })
    }

    fn sample(variant: &str, index: u32) -> Event {
        Event::Sample(Sample {
            key: key(variant),
            index,
            time_ps: 1,
            sm_clock_mhz: None,
            memory_clock_mhz: None,
            temperature_c: None,
            power_mw: None,
            throttle: None,
            throttled: None,
        })
    }

    fn end(variant: &str, samples: u32) -> Event {
        let stopped_by = StoppedBy::Precise;
        Event::End(End { key: key(variant), samples, stopped_by, warm_up_ns: 1, correct: None, relative_error: None, notes: Vec::new() })
    }

    fn error(variant: &str) -> Event {
        Event::Error { key: key(variant), message: "no".to_owned() }
    }

    fn verdict(events: &[Event]) -> String {
        let mut sequence = Sequence::new();
        let faults = events.iter().filter_map(|event| sequence.accept(event).err());
        faults.collect::<Vec<_>>().join("; ").replace("m/ops/gemv/decode/", "")
    }

    #[test]
    fn a_sound_run_is_accepted() {
        let run = [
            device(),
            start("a"),
            sample("a", 0),
            sample("a", 1),
            end("a", 2),
            error("b"),
            start("c"),
            error("c"),
            start("d"),
            end("d", 0),
        ];
        assert_eq!(verdict(&run), "");
    }

    #[test]
    fn disorder_is_said() {
        assert_eq!(verdict(&[start("a")]), "a starts before the device is named");
        assert_eq!(verdict(&[device(), sample("a", 0)]), "a sample of a, which does not run");
        assert_eq!(verdict(&[device(), start("a"), sample("b", 0)]), "a sample of b, which does not run");
        assert_eq!(verdict(&[device(), start("a"), start("b")]), "b starts while a runs");
        assert_eq!(verdict(&[device(), start("a"), device()]), "a device is named while a runs");
        assert_eq!(verdict(&[device(), start("a"), sample("a", 1)]), "sample 1 of a where 0 was due");
        assert_eq!(verdict(&[device(), start("a"), sample("a", 0), end("a", 2)]), "a ends with 2 samples where 1 were printed");
        assert_eq!(verdict(&[device(), start("a"), end("b", 0), end("a", 0)]), "b ends without running");
        assert_eq!(verdict(&[device(), start("a"), end("a", 0), start("b"), end("b", 0), start("a")]), "a starts a second time");
        assert_eq!(verdict(&[device(), start("a"), error("a"), start("a"), end("a", 0)]), "", "a second try is not a second time");
    }

    #[test]
    fn numbers_that_cannot_be_are_said() {
        let timed = |time_ps: u64| match sample("a", 0) {
            Event::Sample(sample) => Event::Sample(Sample { time_ps, ..sample }),
            other => other,
        };
        let said = |time_ps: u64| verdict(&[device(), start("a"), timed(time_ps)]);
        assert_eq!([said(1), said(MAX_SAMPLE_PS)], ["", ""]);
        assert_eq!(said(0), "sample 0 of a takes 0 ps");
        assert_eq!(said(i64::MAX as u64), "sample 0 of a takes 9223372036854775807 ps, more than a day");
        let sized = |bytes, flops| match start("a") {
            Event::Start(start) => Event::Start(Start { bytes, flops, ..start }),
            other => other,
        };
        assert_eq!(verdict(&[device(), sized(Some(MAX_AMOUNT), Some(MAX_AMOUNT))]), "");
        assert_eq!(
            verdict(&[device(), sized(Some(1), Some(u64::MAX))]),
            "a starts with 18446744073709551615 operations, more than any run does"
        );
    }

    #[test]
    fn a_long_text_is_shortened() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(500)).chars().count(), 83);
    }
}
