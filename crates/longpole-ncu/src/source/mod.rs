//! From a cubin and per-instruction samples to lines and instructions of the source.
//!
//! Independent of the report's format: [`source_view`] takes plain inputs. Its parts can be used alone: [`Cubin`] finds a kernel's code,
//! [`LineTable`] its source lines, [`sass`] decodes instructions as far as facts go, [`dataflow`] names the load behind a stall, and
//! [`Disassembly`] reads what `nvdisasm` printed.

mod cubin;
pub mod dataflow;
mod lines;
mod nvdisasm;
mod of_report;
pub mod sass;
mod view;

pub use cubin::{Cubin, CubinError, Function, INSTRUCTION_BYTES, SmVersion};
pub use lines::{LineTable, Location, SourceLine};
pub use nvdisasm::{Disassembly, raw_architecture};
pub use of_report::{sample_rows, selection, view_of};
pub use view::{FileLine, InstructionRow, LineRow, Note, Producer, SampleRow, SourceInput, SourceView, StallCount, Totals, source_view};

#[cfg(test)]
mod tests;
