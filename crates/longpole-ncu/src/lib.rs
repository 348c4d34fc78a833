//! Nsight Compute reports: container, metrics, source lines, summary, comparison. Depends on nothing else of ours.
//!
//! [`Report::open`] indexes a file without reading its payloads; [`Report::decode`] then reads one result, as much of it as a
//! [`Selection`] asks for, from any thread. The layout of the container is drawn in the `container` module.
//!
//! The facts about the format come from the "Report File Format" chapter of NVIDIA's Nsight Compute Customization Guide and from
//! reports compared with ncu's own output; nothing of NVIDIA's is part of this crate.

pub mod compare;
mod container;
mod csv;
mod error;
mod metrics;
mod nvtx;
mod report;
mod result;
mod rules;
mod sections;
mod session;
pub mod source;
mod source_data;
pub mod summary;
pub mod table;
#[cfg(test)]
mod testing;
mod trouble;
pub mod units;

pub use container::{EntryKind, Process};
pub use error::Error;
pub use metrics::{Instance, Metric, Metrics, Value};
pub use nvtx::NvtxRange;
pub use report::{Page, Report};
pub use result::{ProfiledResult, Selection};
pub use rules::{FocusMetric, Message, MessageKind, Rule, Scope};
pub use sections::Section;
pub use session::{Device, Session};
pub use source_data::{LoadedFunction, SourceData, SourceFile};
pub use trouble::{Severity, Trouble, TroubleCode, Troubles};
