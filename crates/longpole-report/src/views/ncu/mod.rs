//! Tables of Nsight Compute reports.

mod compare;
mod launches;
mod metrics;
mod source;

pub use compare::{comparison_rows, figure_words, figures, pairs};
pub use launches::{LaunchRow, TotalRow, families, launches, names};
pub use metrics::metrics;
pub use source::{instruction_rows, instructions, lines};
