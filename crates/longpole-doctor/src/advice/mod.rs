//! What to do, in commands for this machine. Also for other commands, which meet the same walls.

mod counters;
mod install;
mod support;

pub use counters::open_counters;
pub use install::{Package, install};
pub(crate) use install::{named, put_on_path};
pub use support::{Support, needed};
