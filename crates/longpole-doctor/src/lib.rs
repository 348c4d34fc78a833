//! What this machine can profile, what stands in the way, and the exact way out.
//!
//! [`Facts::of`] looks at a [`Machine`], [`checks()`] judges what it found, [`ways`] says what will work; [`examine`] does all three. Nothing is
//! changed: files are read, programs are asked for their version and for the state of the GPUs, and every command that would change something
//! is only told.
//!
//! [`Host`] is the machine it runs on, [`Captured`] one written down as text, on which every piece of advice is tested. No library of
//! NVIDIA is linked or loaded: a broken driver is one of the things to be found.
//!
//! To add a fact, a field in a file of `facts`; to add a check, see [`mod@checks`]. Sources of what is advised are in `docs/doctor.md`.

mod advice;
pub mod checks;
pub mod facts;
mod machine;
mod verdict;

pub use advice::{Package, Support, install, needed, open_counters};
pub use checks::{Check, Fix, Status, Verify, checks};
pub use facts::Facts;
pub use machine::{Captured, Host, MOST_FILE_BYTES, MOST_NAMES, MOST_OUTPUT_BYTES, Machine, Outcome};
pub use verdict::{Way, Works, ways};

/// Everything the doctor has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What was found out.
    pub facts: Facts,
    /// What it means.
    pub checks: Vec<Check>,
    /// What will work.
    pub ways: Vec<Way>,
}

impl Diagnosis {
    /// Codes of the checks that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        self.checks.iter().filter(|check| check.status == Status::Bad).map(|check| check.code).collect()
    }
}

/// Looks at a machine and judges it.
pub fn examine(machine: &dyn Machine) -> Diagnosis {
    let facts = Facts::of(machine);
    let checks = checks(&facts);
    let ways = ways(&facts, &checks);
    Diagnosis { facts, checks, ways }
}
