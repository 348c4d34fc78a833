//! Nsight Compute reports: container, metrics, source lines, summary, comparison. Depends on nothing else of ours.

pub mod source;
