//! Tables of Nsight Compute reports.

mod compare;
mod launches;
mod metrics;
mod source;

pub(crate) use compare::figure_words;
pub use compare::{comparison_rows, figures, name_totals};
pub use launches::{LaunchRow, TotalRow, families, launches, names};
pub use metrics::metrics;
pub use source::{instruction_rows, instructions, lines};
