//! The importer of Nsight Systems exports on files made for it: every schema, and what is odd about real ones.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod damage;
mod made;
mod schemas;
mod support;
