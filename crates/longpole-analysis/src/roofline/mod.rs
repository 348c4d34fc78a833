//! The roofline: how long the work of each operator must take on its device, beside how long it took.
//!
//! For every operator with recorded shapes there is a formula for the arithmetic its definition asks for and the bytes it must move at
//! least: each input read once, each output written once. The floor is the larger of FLOPs over peak and bytes over bandwidth. What a row
//! took over its floor is what a perfect kernel would win; fusing operators can win more, since a tensor between them need not move at all.
//!
//! A row is an operator that launched device work itself: `aten::linear` launches through `aten::addmm`, so the latter has the row, and no
//! time or work is counted twice. To add an operator, add its name to the table in `formulas`.

mod calls;
mod collect;
mod dtype;
mod formulas;
mod op_work;
mod peaks;
mod shapes;
mod table;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use calls::{CallWorks, call_works};
pub use dtype::Dtype;
pub use formulas::{WorkFamily, gemm_work};
pub use op_work::OpWork;
pub use peaks::{KnownDevice, MeasuredPeaks, PeakKind, Peaks};
pub use table::{
    FasterThan, LAUNCH_BOUND_KERNEL_NS, NEGLIGIBLE_FLOOR_NS, NoPeaks, RooflineRow, RooflineTable, UnknownRows, Verdict, peaks_of, roofline,
};
pub(crate) use work::ns_at;
pub use work::{Engine, Floor, Roof, UnknownWork, Work};
