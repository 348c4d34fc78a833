//! One process of a suite after the other, until every benchmark was tried.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use longpole_bench::key::Key;
use longpole_bench::protocol::{Event, Events, Line, ReadError, Sequence};
use longpole_bench::results::KeyResult;

use super::bar::Bar;
use super::child::{Next, Running, Said, how};
use super::record::Record;
use super::suite::{Suite, last_words};
use crate::exit::Failure;

/// Faults of the protocol that are said; a suite that breaks it usually does so in every line.
const MOST_FAULTS: usize = 3;

/// Samples of one benchmark in one process that are kept. No suite needs as many, and one that never ends must not fill the memory.
const MOST_SAMPLES: usize = 1 << 20;

/// How a process of a suite came to its end.
enum End {
    /// By itself; with whether it says that all went well.
    Over(bool),
    /// Before its time: why, and the benchmark that ran.
    Broken(String, Option<Key>),
}

/// What is wanted of a suite.
pub(crate) struct Measuring<'a> {
    /// The suite.
    pub(crate) suite: &'a Suite,
    /// More arguments of `run`.
    pub(crate) args: &'a [OsString],
    /// Where progress is shown.
    pub(crate) bar: &'a Bar,
    /// Said beside the benchmark, such as the round.
    pub(crate) stage: &'a str,
}

/// One process, as it goes.
struct Process<'p> {
    record: &'p mut Record,
    number: u32,
    bar: &'p Bar,
    stage: &'p str,
    wanted: BTreeSet<&'p Key>,
    sequence: Sequence,
    open: Option<KeyResult>,
    tried: BTreeSet<Key>,
    faults: usize,
    events: u64,
}

impl Process<'_> {
    fn line(&mut self, line: Result<Line, ReadError>) -> Result<(), Failure> {
        match line {
            Ok(Line::Event(event)) => self.event(*event),
            // Of a later version of the protocol.
            Ok(Line::Unknown(_)) => Ok(()),
            Ok(Line::Text(text)) => {
                self.bar.line(&text);
                Ok(())
            }
            Err(error) => self.fault(&error.to_string()),
        }
    }

    /// Something that the protocol does not allow: the benchmark that runs cannot be trusted.
    fn fault(&mut self, what: &str) -> Result<(), Failure> {
        self.faults += 1;
        if self.faults <= MOST_FAULTS {
            self.bar.line(&format!("the suite breaks the protocol: {what}"));
        }
        if let Some(KeyResult { key, .. }) = self.open.take() {
            // As if the suite had said so itself: the next benchmark may begin.
            let failed = Event::Error { key: key.clone(), message: String::new() };
            let _ = self.sequence.accept(&failed);
            self.fail(&key, &format!("the suite broke the protocol: {what}"))?;
        }
        Ok(())
    }

    fn fail(&mut self, key: &Key, message: &str) -> Result<(), Failure> {
        self.bar.step();
        self.tried.insert(key.clone());
        self.record.fail(key, message)
    }

    fn event(&mut self, event: Event) -> Result<(), Failure> {
        self.events += 1;
        if let Some(key) = event.key()
            && !self.wanted.contains(key)
        {
            return self.fault(&format!("{key} was not asked for"));
        }
        if let Err(cause) = self.sequence.accept(&event) {
            self.fault(&cause)?;
            // A benchmark that begins before the last one ended is sound itself.
            if !matches!(event, Event::Start(_)) || self.sequence.accept(&event).is_err() {
                return Ok(());
            }
        }
        match event {
            Event::Device { device } => self.record.device(&device),
            Event::Start(start) => {
                self.bar.say(&format!("{}{}", self.stage, start.key));
                self.open = Some(KeyResult::begin(&start));
                Ok(())
            }
            Event::Sample(sample) => {
                if sample.time_ps == 0 || i64::try_from(sample.time_ps).is_err() {
                    return self.fault(&format!("a sample of {} takes {} ps", sample.key, sample.time_ps));
                }
                if let Some(open) = &mut self.open
                    && open.samples.len() < MOST_SAMPLES
                {
                    open.add(self.number, &sample);
                }
                Ok(())
            }
            Event::End(end) => {
                let Some(mut open) = self.open.take() else { return Ok(()) };
                open.finish(&end);
                if open.samples.is_empty() {
                    return self.fail(&end.key, "the suite took no samples of it");
                }
                self.bar.step();
                self.tried.insert(end.key);
                self.record.take(open)
            }
            Event::Error { key, message } => {
                self.open = None;
                self.fail(&key, &message)
            }
            Event::Profile { .. } | Event::Peak(_) => Ok(()),
        }
    }
}

impl Measuring<'_> {
    /// Measures all of `keys` in a process, and in further ones what is left when one breaks. A benchmark that broke a process is not tried
    /// again, so this ends.
    pub(crate) fn all(&self, record: &mut Record, keys: &[Key], number: u32) -> Result<(), Failure> {
        let mut left = keys.to_vec();
        while !left.is_empty() {
            let (end, tried) = self.process(record, &left, number)?;
            left.retain(|key| !tried.contains(key));
            match end {
                End::Over(_) if left.is_empty() => {}
                End::Over(well) => {
                    let ended = if well { "ended well" } else { "ended with a fault" };
                    for key in &left {
                        self.bar.step();
                        record.fail(key, &format!("the suite {ended} without measuring it"))?;
                    }
                    left.clear();
                }
                End::Broken(why, Some(key)) => {
                    self.bar.line(&format!("{key}: the suite {why}"));
                    self.bar.step();
                    record.fail(&key, &format!("the suite {why}"))?;
                    left.retain(|other| *other != key);
                }
                // Between two benchmarks: whatever it is, more processes will not help if this one did nothing.
                End::Broken(why, None) if tried.is_empty() => {
                    return Err(Failure::Input(format!("the suite `{}` {why}", self.suite.name())));
                }
                End::Broken(why, None) => self.bar.line(&format!("the suite {why}; it is started again")),
            }
        }
        Ok(())
    }

    fn process(&self, record: &mut Record, keys: &[Key], number: u32) -> Result<(End, BTreeSet<Key>), Failure> {
        let words = ["run"].map(OsStr::new).into_iter().chain(keys.iter().map(|key| OsStr::new(key.as_str())));
        let args = words.chain([OsStr::new("--json-lines")]).chain(self.args.iter().map(OsString::as_os_str));
        let read = |stdout: std::io::BufReader<std::process::ChildStdout>, take: &dyn Fn(Result<Line, ReadError>) -> bool| {
            for line in Events::new(stdout) {
                if !take(line) {
                    break;
                }
            }
        };
        let name = self.suite.name();
        self.bar.say(&format!("{}starting {name}", self.stage));
        let mut running = Running::start(&mut self.suite.command(args), read)
            .map_err(|error| Failure::Input(format!("the suite `{name}` cannot be started: {error}")))?;
        let mut process = Process {
            record,
            number,
            bar: self.bar,
            stage: self.stage,
            wanted: keys.iter().collect(),
            sequence: Sequence::new(),
            open: None,
            tried: BTreeSet::new(),
            faults: 0,
            events: 0,
        };
        let broken = loop {
            match running.next(self.suite.patience) {
                Next::Said(Said::Output(line)) => process.line(line)?,
                Next::Said(Said::Complaint(line)) => self.bar.line(&line),
                Next::Over => break None,
                Next::Silent => {
                    running.stop();
                    break Some(silent(self.suite.patience));
                }
                Next::Interrupted(signal) => {
                    running.leave();
                    process.record.interrupted(signal);
                }
            }
        };
        let status = if broken.is_none() { running.status() } else { None };
        let words = running.last_words();
        let (open, tried, events) = (process.open.take().map(|open| open.key), process.tried, process.events);
        if let Some(why) = broken {
            return Ok((End::Broken(why, open), tried));
        }
        if events == 0 && status.is_some_and(|status| status.success()) {
            let why = format!("printed nothing that the protocol knows (docs/suite-protocol.md){}", last_words(&words));
            return Ok((End::Broken(why, None), tried));
        }
        // Status 1 says that a benchmark failed, of which there is an event.
        let is_usual = status.is_some_and(|status| status.success() || (status.code() == Some(1) && !tried.is_empty()));
        if is_usual && open.is_none() {
            return Ok((End::Over(status.is_some_and(|status| status.success())), tried));
        }
        Ok((End::Broken(format!("{}{}", how(status), last_words(&words)), open), tried))
    }
}

fn silent(patience: Duration) -> String {
    format!("said nothing for {} s and was ended (--timeout gives it longer)", patience.as_secs())
}
