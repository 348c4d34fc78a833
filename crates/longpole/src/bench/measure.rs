//! One process of a suite after the other, until every benchmark was tried.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

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

/// Bytes of keys on one command line, with the eight of a pointer for each: a system takes a million or two, the environment included.
const MOST_WORDS: usize = 256 << 10;

/// How a process of a suite came to its end.
enum End {
    /// By itself; with whether it says that all went well.
    Over(bool),
    /// Before its time: why, and the benchmark that ran.
    Broken(String, Option<Key>),
}

/// What came of a process.
struct Outcome {
    end: End,
    /// Benchmarks that were measured or failed.
    tried: BTreeSet<Key>,
    /// What broke the protocol where no benchmark ran, by the benchmark it was about.
    causes: BTreeMap<Key, String>,
    /// The first of these, and of those about none.
    first_cause: Option<String>,
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
    causes: BTreeMap<Key, String>,
    first_cause: Option<String>,
    faults: usize,
    events: u64,
    /// Whether the last thing was a fault that ended a benchmark.
    is_cut: bool,
}

impl Process<'_> {
    fn line(&mut self, line: Result<Line, ReadError>) -> Result<(), Failure> {
        match line {
            Ok(Line::Event(event)) => self.event(*event)?,
            // Of a later version of the protocol.
            Ok(Line::Unknown(_)) => {}
            Ok(Line::Text(text)) => self.bar.line(&text),
            Err(error) => self.fault(&error.to_string(), None),
        }
        self.news();
        Ok(())
    }

    /// What the record has to say.
    fn news(&mut self) {
        for news in self.record.news() {
            self.bar.line(&news);
        }
    }

    /// Something that the protocol does not allow: the benchmark that runs cannot be trusted.
    fn fault(&mut self, what: &str, about: Option<&Key>) {
        self.faults += 1;
        if self.faults <= MOST_FAULTS {
            self.bar.line(&format!("the suite breaks the protocol: {what}"));
        }
        if let Some(KeyResult { key, .. }) = self.open.take() {
            // As if the suite had said so itself: the next benchmark may begin.
            let failed = Event::Error { key: key.clone(), message: String::new() };
            let _ = self.sequence.accept(&failed);
            self.is_cut = true;
            self.fail(&key, &format!("the suite broke the protocol: {what}"));
            return;
        }
        self.first_cause.get_or_insert_with(|| what.to_owned());
        if let Some(key) = about.filter(|key| self.wanted.contains(*key)) {
            self.causes.entry(key.clone()).or_insert_with(|| what.to_owned());
        }
    }

    fn fail(&mut self, key: &Key, message: &str) {
        self.bar.step();
        self.tried.insert(key.clone());
        self.record.fail(key, message);
    }

    fn event(&mut self, event: Event) -> Result<(), Failure> {
        self.events += 1;
        if let Some(key) = event.key()
            && !self.wanted.contains(key)
        {
            let what = format!("{key} was not asked for");
            self.fault(&what, None);
            return Ok(());
        }
        if let Err(cause) = self.sequence.accept(&event) {
            if let Event::Start(start) = &event
                && self.tried.contains(&start.key)
            {
                self.record.note(&start.key, "the suite started it a second time in one process; the first time counts");
            }
            self.fault(&cause, event.key());
            // A benchmark that begins before the last one ended is sound itself.
            if !matches!(event, Event::Start(_)) || self.sequence.accept(&event).is_err() {
                return Ok(());
            }
        }
        self.is_cut = false;
        match event {
            Event::Device { device } => self.record.device(&device).map_err(Failure::Input)?,
            Event::Start(start) => {
                self.bar.say(&format!("{}{}", self.stage, start.key));
                self.open = Some(KeyResult::begin(&start));
            }
            Event::Sample(sample) => {
                if let Some(open) = &mut self.open
                    && open.samples.len() < MOST_SAMPLES
                {
                    open.add(self.number, &sample);
                }
            }
            Event::End(end) => {
                let Some(mut open) = self.open.take() else { return Ok(()) };
                open.finish(&end);
                if open.samples.is_empty() {
                    self.fail(&end.key, "the suite took no samples of it");
                    return Ok(());
                }
                self.bar.step();
                self.tried.insert(end.key);
                self.record.take(open);
            }
            Event::Error { key, message } => {
                self.open = None;
                self.fail(&key, &message);
            }
            Event::Profile { .. } | Event::Peak(_) => {}
        }
        Ok(())
    }
}

/// How many of these keys fit on one command line.
fn fitting(keys: &[Key]) -> usize {
    let mut bytes = 0;
    let fits = |key: &&Key| {
        bytes += key.as_str().len() + 1 + size_of::<usize>();
        bytes <= MOST_WORDS
    };
    keys.iter().take_while(fits).count().max(1)
}

impl Measuring<'_> {
    /// Measures all of `keys` in a process (in several one after the other, where they do not fit on one command line), and in further ones what
    /// is left when one breaks. A benchmark that broke a process is not tried again, so this ends.
    ///
    /// # Errors
    ///
    /// Where a process did nothing and nothing was measured before. Otherwise what is left fails, so that what is there can be shown.
    pub(crate) fn all(&self, record: &mut Record, keys: &[Key], number: u32) -> Result<(), Failure> {
        let mut left = keys.to_vec();
        while !left.is_empty() {
            let batch: BTreeSet<Key> = left.iter().take(fitting(&left)).cloned().collect();
            let ended =
                self.process(record, &left[..batch.len()], number).and_then(|outcome| self.after(record, &outcome, &mut left, &batch));
            if let Err(failure) = ended {
                if record.is_empty() {
                    return Err(failure);
                }
                self.give_up(record, &left, &failure);
                left.clear();
            }
            for news in record.news() {
                self.bar.line(&news);
            }
        }
        Ok(())
    }

    /// Notes of benchmarks that they cannot be measured any more.
    pub(crate) fn give_up(&self, record: &mut Record, keys: &[Key], failure: &Failure) {
        let why = failure.message().unwrap_or_default();
        self.bar.line(&why);
        for key in keys {
            self.bar.step();
            record.fail(key, &why);
        }
    }

    /// Takes from `left` what a process with these benchmarks has done, or will not do.
    fn after(&self, record: &mut Record, outcome: &Outcome, left: &mut Vec<Key>, batch: &BTreeSet<Key>) -> Result<(), Failure> {
        left.retain(|key| !outcome.tried.contains(key));
        match &outcome.end {
            End::Over(well) => {
                let ended = if *well { "ended well" } else { "ended with a fault" };
                for key in left.iter().filter(|key| batch.contains(key)) {
                    self.bar.step();
                    let cause = outcome.causes.get(key).or(outcome.first_cause.as_ref());
                    let because = cause.map(|cause| format!(" (it broke the protocol: {cause})")).unwrap_or_default();
                    record.fail(key, &format!("the suite {ended} without measuring it{because}"));
                }
                left.retain(|key| !batch.contains(key));
            }
            End::Broken(why, Some(key)) => {
                self.bar.line(&format!("{key}: the suite {why}"));
                self.bar.step();
                record.fail(key, &format!("the suite {why}"));
                left.retain(|other| other != key);
            }
            // Between two benchmarks: whatever it is, more processes will not help if this one did nothing.
            End::Broken(why, None) if outcome.tried.is_empty() => {
                let because = outcome.first_cause.as_ref().map(|cause| format!(" (it broke the protocol: {cause})")).unwrap_or_default();
                return Err(Failure::Input(format!("the suite `{}` {why}{because}", self.suite.name())));
            }
            End::Broken(why, None) => {
                let again = if left.iter().any(|key| batch.contains(key)) { "; it is started again" } else { "" };
                self.bar.line(&format!("the suite {why}{again}"));
            }
        }
        Ok(())
    }

    fn process(&self, record: &mut Record, keys: &[Key], number: u32) -> Result<Outcome, Failure> {
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
            causes: BTreeMap::new(),
            first_cause: None,
            faults: 0,
            events: 0,
            is_cut: false,
        };
        let mut heard = Instant::now();
        let broken = loop {
            // What waits to be saved is saved while the suite is at its next benchmark.
            let patience = self.suite.patience.saturating_sub(heard.elapsed());
            let next = running.next(process.record.due().unwrap_or(patience).min(patience));
            if !matches!(next, Next::Silent) {
                heard = Instant::now();
            }
            match next {
                Next::Said(Said::Output(line)) => process.line(line)?,
                Next::Said(Said::Complaint(line)) => self.bar.line(&line),
                Next::Over => break None,
                Next::Silent if heard.elapsed() < self.suite.patience => {
                    process.record.save_if_due();
                    process.news();
                }
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
        let Process { open, tried, causes, first_cause, events, is_cut, .. } = process;
        let well = status.is_some_and(|status| status.success());
        let end = match (broken, open.map(|open| open.key)) {
            (Some(why), open) => End::Broken(why, open),
            // A status that says that all is well explains nothing.
            (None, Some(open)) if well => End::Broken(format!("ended in the middle of the benchmark{}", last_words(&words)), Some(open)),
            (None, Some(open)) => End::Broken(format!("{} in the middle of the benchmark{}", how(status), last_words(&words)), Some(open)),
            (None, None) if well && events == 0 => {
                End::Broken(format!("printed nothing that the protocol knows (docs/suite-protocol.md){}", last_words(&words)), None)
            }
            // A line that is cut is the fault of what ended the process, and no reason against the benchmarks behind it.
            (None, None) if well && is_cut => End::Broken("ended in the middle of a benchmark".to_owned(), None),
            // Status 1 says that a benchmark failed, of which there is an event.
            (None, None) if well || (status.is_some_and(|status| status.code() == Some(1)) && !tried.is_empty()) => End::Over(well),
            (None, None) => End::Broken(format!("{}{}", how(status), last_words(&words)), None),
        };
        Ok(Outcome { end, tried, causes, first_cause })
    }
}

fn silent(patience: Duration) -> String {
    format!("said nothing for {} s and was ended (--timeout gives it longer)", patience.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fit_on_a_command_line() {
        let key = |at: usize| Key::parse(&format!("m/ops/{at:0>180}/decode/v")).unwrap();
        let keys: Vec<Key> = (0..3000).map(key).collect();
        let first = fitting(&keys);
        assert!((1000..2000).contains(&first), "{first}");
        assert_eq!([fitting(&keys[..10]), fitting(&keys[..1]), fitting(&[])], [10, 1, 1]);
    }
}
