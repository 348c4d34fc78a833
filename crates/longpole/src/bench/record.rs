//! What is being measured, saved again after every benchmark.

use std::path::PathBuf;

use longpole_bench::key::Key;
use longpole_bench::protocol::{Device, SuiteInfo};
use longpole_bench::results::{KeyResult, Results};
use longpole_report::redact_string;

use super::when::When;
use super::{git, interrupt, store};
use crate::exit::{Failure, complain};

/// Results on their way to a file.
pub(crate) struct Record {
    pub(crate) results: Results,
    /// Where they are kept; `None` where nothing is to be kept.
    pub(crate) path: Option<PathBuf>,
}

impl Record {
    /// Nothing measured yet.
    pub(crate) fn new(suite: &SuiteInfo, when: When, path: Option<PathBuf>) -> Self {
        let mut results = Results::new(when.whole(), suite.clone());
        results.git = git::state();
        Self { results, path }
    }

    fn save(&self) -> Result<(), Failure> {
        self.path.as_ref().map_or(Ok(()), |path| store::save(path, &self.results))
    }

    /// What a process measures on.
    pub(crate) fn device(&mut self, device: &Device) -> Result<(), Failure> {
        self.results.on(device).map_err(Failure::Input)
    }

    /// A benchmark was measured.
    pub(crate) fn take(&mut self, mut result: KeyResult) -> Result<(), Failure> {
        result.notes.iter_mut().for_each(redact_string);
        let key = result.key.clone();
        if let Err(why) = self.results.take(result) {
            self.results.fail(&key, &why);
        }
        self.save()
    }

    /// A benchmark could not be. Messages hold whatever a compiler or driver says, and results are made to be kept and shown around.
    pub(crate) fn fail(&mut self, key: &Key, message: &str) -> Result<(), Failure> {
        let mut message = message.to_owned();
        redact_string(&mut message);
        self.results.fail(key, &message);
        self.save()
    }

    /// Everything that was asked for was tried.
    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        self.results.complete = true;
        self.save()
    }

    /// The user wants an end: says what is kept, and ends as the signal asks.
    pub(crate) fn interrupted(&self, signal: i32) -> ! {
        let measured = self.results.results.len();
        let kept = self.path.as_ref().filter(|_| measured > 0).map(|path| format!(", kept in {}", path.display())).unwrap_or_default();
        complain(&format!("interrupted after {measured} benchmarks{kept}"));
        interrupt::end(signal)
    }
}
