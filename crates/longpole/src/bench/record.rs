//! What is being measured, saved while it goes on.
//!
//! The whole document is written each time, so it is not written after every benchmark: at most once a second, and less often where that takes
//! long. What waits is written when that time is over, at the end, and on an interrupt. A file that cannot be written is said, and costs the
//! measuring nothing.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longpole_bench::key::Key;
use longpole_bench::protocol::{Device, SuiteInfo};
use longpole_bench::results::{KeyResult, Results};
use longpole_report::redact_string;

use super::store::Stamp;
use super::when::When;
use super::{git, interrupt, store};
use crate::exit::{Failure, complain};

/// Least time between two savings.
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two savings is at least this many times what one takes, so that a run spends no more than a tenth of its time on it.
const PAUSES: u32 = 10;

/// Where results are to be kept.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Nowhere.
    Nowhere,
    /// In this file.
    File(PathBuf),
    /// In a folder of this one, by date and revision; the word tells several files of one moment apart.
    Folder(PathBuf, Option<&'static str>),
}

/// Results on their way to a file.
pub(crate) struct Record {
    pub(crate) results: Results,
    /// Where they are kept.
    path: Option<PathBuf>,
    /// The file that lies there, as it was left.
    stamp: Option<Stamp>,
    /// Whether that is an empty one which holds the name, and its folder is new.
    reserved: Option<bool>,
    places: HashMap<Key, usize>,
    failing: HashSet<Key>,
    /// Whether something is not in the file.
    is_pending: bool,
    /// When it was saved last, and how long that took.
    saved: Option<(Instant, Duration)>,
    /// Why it could not be saved the last time.
    unsaved: Option<String>,
    /// What the user has not been told.
    news: Vec<String>,
}

/// How long nothing is saved after something was.
fn pause(cost: Duration) -> Duration {
    (cost * PAUSES).max(PAUSE)
}

impl Record {
    /// Nothing measured yet. That the place can be written to is found now, before anything is measured.
    pub(crate) fn new(suite: &SuiteInfo, when: When, place: Place) -> Result<Self, Failure> {
        let mut results = Results::new(when.whole(), suite.clone());
        results.git = git::state();
        let mut record = Self::of(results);
        match place {
            Place::Nowhere => {}
            Place::File(path) => {
                store::probe(&path).map_err(|error| Failure::Usage(store::unwritable(&path, &error)))?;
                record.stamp = Stamp::of(&path);
                record.path = Some(path);
            }
            Place::Folder(parent, what) => {
                let folder = store::folder(&parent, when, record.results.git.as_ref());
                let what = what.map(|what| format!("-{what}")).unwrap_or_default();
                let is_new = !folder.exists();
                let path = store::reserve(&folder, &format!("{}-{}{what}", store::name_part(&suite.name), when.clock()), "json");
                let path = path.map_err(|error| Failure::Usage(store::unwritable(&folder, &error)))?;
                record.stamp = Stamp::of(&path);
                record.reserved = Some(is_new);
                record.path = Some(path);
            }
        }
        Ok(record)
    }

    /// Results that are there already, kept nowhere else.
    pub(crate) fn of(results: Results) -> Self {
        Self {
            places: results.results.iter().enumerate().map(|(at, result)| (result.key.clone(), at)).collect(),
            failing: results.failed.iter().map(|failed| failed.key.clone()).collect(),
            results,
            path: None,
            stamp: None,
            reserved: None,
            is_pending: false,
            saved: None,
            unsaved: None,
            news: Vec::new(),
        }
    }

    /// The file that holds everything; `None` where there is none.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.unsaved.is_none() && self.reserved.is_none())
    }

    /// Why not everything is in the file.
    pub(crate) fn unsaved(&self) -> Option<&str> {
        self.unsaved.as_deref()
    }

    /// What the user has not been told.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Whether nothing came of it so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.results.results.is_empty() && self.results.failed.is_empty()
    }

    /// What a process measures on; the error is a sentence.
    pub(crate) fn device(&mut self, device: &Device) -> Result<(), String> {
        self.results.on(device)
    }

    /// A benchmark was measured.
    pub(crate) fn take(&mut self, mut result: KeyResult) {
        result.notes.iter_mut().for_each(redact_string);
        let key = result.key.clone();
        self.no_failure(&key);
        let merged = if let Some(known) = self.places.get(&key).and_then(|&at| self.results.results.get_mut(at)) {
            known.merge(result)
        } else {
            self.places.insert(key.clone(), self.results.results.len());
            self.results.results.push(result);
            Ok(())
        };
        match merged {
            Ok(()) => self.changed(),
            Err(why) => self.fail(&key, &why),
        }
    }

    /// A benchmark could not be. Messages hold whatever a compiler or driver says, and results are made to be kept and shown around.
    pub(crate) fn fail(&mut self, key: &Key, message: &str) {
        let mut message = message.to_owned();
        redact_string(&mut message);
        self.no_failure(key);
        self.failing.insert(key.clone());
        self.results.failed.push(longpole_bench::results::Failed { key: key.clone(), message });
        self.changed();
    }

    /// Something to know of a benchmark that was measured.
    pub(crate) fn note(&mut self, key: &Key, note: &str) {
        if let Some(result) = self.places.get(key).and_then(|&at| self.results.results.get_mut(at))
            && !result.notes.iter().any(|known| known == note)
        {
            result.notes.push(note.to_owned());
            self.changed();
        }
    }

    fn no_failure(&mut self, key: &Key) {
        if self.failing.remove(key) {
            self.results.failed.retain(|failed| failed.key != *key);
        }
    }

    fn changed(&mut self) {
        self.is_pending = true;
        self.save_if_due();
    }

    /// How long what waits may wait; `None` if nothing does.
    pub(crate) fn due(&self) -> Option<Duration> {
        let path = self.path.as_ref().filter(|_| self.is_pending)?;
        // Into a pipe it goes once, whole.
        if store::is_stream(path) {
            return None;
        }
        Some(self.saved.map_or(Duration::ZERO, |(at, cost)| pause(cost).saturating_sub(at.elapsed())))
    }

    /// Saves if it is time.
    pub(crate) fn save_if_due(&mut self) {
        if self.due() == Some(Duration::ZERO) {
            self.save();
        }
    }

    fn save(&mut self) {
        if self.path.is_none() {
            return;
        }
        let began = Instant::now();
        match self.written() {
            Ok(()) => {
                (self.is_pending, self.unsaved, self.reserved) = (false, None, None);
            }
            Err(why) => {
                // At the end it is what the run ends with.
                if self.unsaved.as_deref() != Some(&why) && !self.results.complete {
                    self.news.push(format!("{why}; measuring goes on"));
                }
                self.unsaved = Some(why);
            }
        }
        self.saved = Some((Instant::now(), began.elapsed()));
    }

    fn written(&mut self) -> Result<(), String> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        self.results.count_clocks();
        let found = Stamp::of(&path);
        if found.is_some() && found != self.stamp {
            // What another run measured is not ours to replace.
            let other = store::beside(&path).map_err(|error| store::unwritable(&path, &error))?;
            self.news.push(format!(
                "another program has written `{}` meanwhile; these results go to `{}`",
                path.display(),
                other.display()
            ));
            self.path = Some(other);
        }
        let path = self.path.as_deref().unwrap_or(&path);
        store::save(path, &self.results)?;
        self.stamp = Stamp::of(path);
        Ok(())
    }

    /// Everything that was asked for was tried.
    pub(crate) fn complete(&mut self) {
        self.results.complete = true;
        self.results.count_clocks();
        self.save();
    }

    /// Takes away the file that holds the name, if nothing came of it.
    fn release(&mut self) {
        let Some((is_new, path)) = self.reserved.take().zip(self.path.as_ref()) else { return };
        store::release(path);
        if let Some(folder) = path.parent().filter(|_| is_new) {
            // Not if it holds anything.
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// The user wants an end: says what is kept, and ends as the signal asks.
    pub(crate) fn interrupted(&mut self, signal: i32) -> ! {
        if self.is_pending {
            self.save();
        }
        let measured = self.results.results.len();
        let kept = self.path().filter(|_| measured > 0).map(|path| format!(", kept in {}", path.display()));
        let lost = self.unsaved.as_ref().map(|why| format!("; {why}"));
        complain(&format!("interrupted after {measured} benchmarks{}", kept.or(lost).unwrap_or_default()));
        self.release();
        interrupt::end(signal)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use longpole_bench::protocol::{L2, Method, Sample, Start};

    use super::*;

    fn key(at: usize) -> Key {
        Key::parse(&format!("m/ops/a/b/v{at}")).unwrap()
    }

    fn result(at: usize) -> KeyResult {
        let (key, method, l2) = (key(at), Method::Events, L2::Cold);
        let start = Start { key, bytes: None, flops: None, dtype: None, method, launches_per_sample: 1, buffers_rotated: 1, l2 };
        let mut result = KeyResult::begin(&start);
        let sample = Sample {
            key: start.key,
            index: 0,
            time_ps: 5,
            sm_clock_mhz: Some(1000),
            memory_clock_mhz: None,
            temperature_c: None,
            power_mw: None,
            throttle: None,
            throttled: None,
        };
        result.add(0, &sample);
        result
    }

    fn record(place: Place) -> Record {
        Record::new(&SuiteInfo { name: "s".to_owned(), version: None }, When::now(), place).unwrap()
    }

    fn kept(path: &Path) -> usize {
        Results::parse(&fs::read(path).unwrap()).unwrap().results.len()
    }

    #[test]
    fn savings_are_rare_and_the_last_one_holds_everything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let mut record = record(Place::File(path.clone()));
        record.take(result(0));
        assert_eq!(kept(&path), 1, "the first is saved at once");
        for at in 1..50 {
            record.take(result(at));
        }
        assert!(kept(&path) < 50 && record.due().is_some_and(|due| due > Duration::ZERO));
        record.saved = record.saved.map(|(at, cost)| (at.checked_sub(Duration::from_mins(1)).unwrap(), cost));
        record.save_if_due();
        assert_eq!((kept(&path), record.due()), (50, None));
        record.take(result(50));
        record.complete();
        let results = Results::parse(&fs::read(&path).unwrap()).unwrap();
        assert!(results.complete && results.results.len() == 51 && results.clocks.sm_mhz == Some(1000));
        assert_eq!([pause(Duration::from_millis(1)), pause(Duration::from_secs(3))], [PAUSE, Duration::from_secs(30)]);
    }

    #[test]
    fn what_cannot_be_saved_is_said_once_and_saved_later() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        let mut record = record(Place::Folder(inside.clone(), None));
        record.take(result(0));
        let path = record.path().unwrap().to_path_buf();
        fs::remove_dir_all(&inside).unwrap();
        fs::write(&inside, "").unwrap();
        for at in 1..3 {
            record.saved = None;
            record.take(result(at));
        }
        assert!(record.path().is_none() && record.unsaved().is_some());
        assert!(matches!(record.news().as_slice(), [one] if one.ends_with("; measuring goes on")));
        fs::remove_file(&inside).unwrap();
        record.complete();
        assert_eq!((record.path(), record.unsaved(), kept(&path)), (Some(path.as_path()), None, 3));
    }

    #[test]
    fn a_run_does_not_replace_what_another_wrote_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "older results, which -o replaces").unwrap();
        let (mut first, mut second) = (record(Place::File(path.clone())), record(Place::File(path.clone())));
        first.take(result(0));
        for at in 1..3 {
            second.take(result(at));
        }
        first.complete();
        second.complete();
        assert_eq!((kept(&path), kept(&folder.path().join("a-2.json"))), (1, 2));
        assert!(matches!(second.news().as_slice(), [one] if one.contains("another program has written")));
        assert_eq!(second.path(), Some(folder.path().join("a-2.json").as_path()));
    }

    #[test]
    fn a_name_is_given_back_where_nothing_came_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = || Place::Folder(folder.path().join("results"), Some("x"));
        drop(record(place()));
        assert_eq!(fs::read_dir(folder.path().join("results")).unwrap().count(), 0);
        let mut measured = record(place());
        measured.fail(&key(0), "no");
        drop(measured);
        assert_eq!(fs::read_dir(folder.path().join("results")).unwrap().count(), 1);
    }

    #[test]
    fn failures_and_results_of_a_benchmark_follow_each_other() {
        let mut record = record(Place::Nowhere);
        record.fail(&key(0), "no");
        record.fail(&key(0), "still no");
        assert_eq!(record.results.failed.len(), 1);
        record.take(result(0));
        record.take(result(0));
        record.note(&key(0), "odd");
        record.note(&key(0), "odd");
        assert!(record.results.failed.is_empty() && record.results.results[0].samples.len() == 2);
        assert_eq!(record.results.results[0].notes, ["odd"]);
        record.take(KeyResult { l2: L2::Warm, ..result(0) });
        assert!(record.results.failed[0].message.contains("in another way"));
    }
}
