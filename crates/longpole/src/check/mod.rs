//! Budgets: limits on any figure that a command prints as JSON, and against a baseline.
//!
//! [`budget`] reads the file, [`path`] finds a figure in a document, [`documents`] makes the documents of a trace, [`figure`] reads limits with
//! their units, [`judge`] puts figure and limit side by side, [`propose`] writes a budget that a trace keeps, [`github`] says it to GitHub.

pub(crate) mod budget;
pub(crate) mod documents;
mod figure;
pub(crate) mod github;
pub(crate) mod judge;
mod path;
pub(crate) mod propose;
