//! The importer of longpole's own recordings, on recordings made for it: what each record becomes, several processes, and what is said of
//! losses, refusals, cuts and costs.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod made;
mod processes;
mod rows;
mod trouble;
mod windows;
