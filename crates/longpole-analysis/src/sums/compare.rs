//! Two sources of sums compared. There is one number of each side, so nothing can be said about noise: rows have no verdict.

use longpole_trace::{AggregateKind, Ns, Trace};

use super::kernels;
use super::{Sums, families};
use crate::diff::{Diff, DiffKind, WholeRow, whole_rows};
use crate::scope::Scope;

/// One of two sources.
#[derive(Clone, Copy, Debug)]
pub struct SumsSide<'a> {
    /// The source.
    pub trace: &'a Trace,
    /// The part of it that is compared.
    pub scope: &'a Scope,
}

fn rows(side: &SumsSide<'_>) -> Vec<WholeRow> {
    let kernels = kernels::rows(&Sums::new(side.trace, side.scope));
    let total: Option<Ns> = kernels.iter().filter_map(|row| row.cuda_ns).reduce(|a, b| a + b);
    let calls = kernels.iter().map(|row| row.calls).reduce(|a, b| a.zip(b).map(|(a, b)| a.saturating_add(b))).flatten();
    let mut rows: Vec<WholeRow> = total.map(|total| (DiffKind::Total, "device_time".to_owned(), total, calls)).into_iter().collect();
    rows.extend(
        families::rows(&kernels)
            .into_iter()
            .filter_map(|row| Some((DiffKind::Family, row.family.name().to_owned(), row.self_cuda_ns?, row.calls))),
    );
    rows.extend(kernels.into_iter().filter_map(|row| Some((DiffKind::Kernel, row.name, row.cuda_ns?, row.calls))));
    rows
}

/// Compares kernels, families and the total.
pub fn diff_sums(before: &SumsSide<'_>, after: &SumsSide<'_>) -> Diff {
    let mut diff = whole_rows(rows(before), rows(after));
    // Layers have names of people's choice, not of C++. A source holds either layers or kernels.
    let has_layers =
        |side: &SumsSide<'_>| kernels::rows(&Sums::new(side.trace, side.scope)).iter().any(|row| row.kind == AggregateKind::Layer);
    if has_layers(before) || has_layers(after) {
        for row in diff.rows.iter_mut().filter(|row| row.kind == DiffKind::Kernel) {
            row.label.clone_from(&row.key);
        }
    }
    diff
}
