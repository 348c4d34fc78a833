//! The family table: device time by what kernels do.

use longpole_trace::{ActivityId, Ns};

use super::{Family, FamilyOfName};
use crate::index::TraceIndex;
use crate::scope::Scope;

/// One row of the family table.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyRow {
    /// The family.
    pub family: Family,
    /// Device activities in it.
    pub calls: u64,
    /// Their summed duration.
    pub self_cuda_ns: Ns,
    /// Its share of the summed duration of all device activity in scope, 0..1; absent when that is zero.
    pub share_fraction: Option<f64>,
}

/// The families that occur in the scope, most device time first.
pub fn family_table(index: &TraceIndex<'_>, scope: &Scope) -> Vec<FamilyRow> {
    let trace = index.trace();
    let mut of_name = FamilyOfName::new(trace);
    let mut sums = vec![(0_u64, Ns::ZERO); Family::ALL.len()];
    for row in 0..trace.activities.len() {
        if scope.includes_activity(index, ActivityId::from_index(row)) {
            let (calls, time) = &mut sums[of_name.get(trace, row) as usize];
            *calls += 1;
            *time += trace.activities.dur[row].max(Ns::ZERO);
        }
    }
    let total: Ns = sums.iter().map(|&(_, time)| time).sum();
    let mut rows: Vec<FamilyRow> = Family::ALL
        .iter()
        .zip(sums)
        .filter(|(_, (calls, _))| *calls > 0)
        .map(|(&family, (calls, self_cuda_ns))| FamilyRow {
            family,
            calls,
            self_cuda_ns,
            share_fraction: (total > Ns::ZERO).then(|| self_cuda_ns.get() as f64 / total.get() as f64),
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.self_cuda_ns));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn families_sum_to_all_device_time() {
        let mut sample = Sample::new();
        sample.launch("cudaLaunchKernel", 0, 5).kernel("nvjet_sm90", 10, 6);
        sample.launch("cudaLaunchKernel", 6, 5).kernel("ncclDevKernel_AllReduce", 20, 2);
        sample.launch("cudaMemsetAsync", 12, 5).memset("Memset (Device)", 30, 0);
        let trace = sample.finish();
        let rows = family_table(&TraceIndex::new(&trace), &Scope::whole());
        let found: Vec<_> = rows.iter().map(|r| (r.family, r.calls, r.self_cuda_ns.get(), r.share_fraction)).collect();
        assert_eq!(found, [(Family::Gemm, 1, 6, Some(0.75)), (Family::Communication, 1, 2, Some(0.25)), (Family::Memset, 1, 0, Some(0.0))]);
    }

    #[test]
    fn shares_of_no_time_are_absent() {
        let mut sample = Sample::new();
        sample.orphan("nvjet", 10, 0);
        let trace = sample.finish();
        assert_eq!(family_table(&TraceIndex::new(&trace), &Scope::whole())[0].share_fraction, None);
    }
}
