//! Two reports, kernel by kernel: what moved.

mod types;

pub use types::{Caution, Comparison, Figure, MatchedBy, Pair};
