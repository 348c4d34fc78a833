//! The kernel table: device activities by name, with the operators that launched them.
//!
//! One counting sort by name puts the rows of each name side by side; the durations of one name at a time are copied out, so that minimum,
//! median and maximum are exact.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, ActivityKind, Ns, StrId, Trace};

use crate::families::Family;
use crate::index::{Owner, TraceIndex};
use crate::scope::Scope;
use crate::short_name::{short_name, with_hash};

/// An operator that launched a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOwner {
    /// Operator name, or `(no operator) cudaGraphLaunch`.
    pub name: String,
    /// Launches of the kernel by it.
    pub calls: u64,
    /// Device time of those.
    pub cuda_ns: Ns,
}

/// One row of the kernel table: all activities of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRow {
    /// The full name.
    pub name: String,
    /// A short, readable name; no two names of one table share it.
    pub short_name: String,
    /// Kernel, copy, fill or other.
    pub kind: ActivityKind,
    /// Its family.
    pub family: Family,
    /// Number of activities.
    pub calls: u64,
    /// Summed duration.
    pub cuda_ns: Ns,
    /// Shortest.
    pub min_ns: Ns,
    /// Median (lower of the two middle values for an even count).
    pub median_ns: Ns,
    /// Longest.
    pub max_ns: Ns,
    /// Who launched it, most device time first. Never empty.
    pub owners: Vec<KernelOwner>,
}

/// Who launched an activity, as far as the table tells launchers apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Launcher {
    Operator(StrId),
    Call(StrId),
    Unrecorded,
}

impl Launcher {
    fn text(self, trace: &Trace) -> String {
        match self {
            Self::Operator(name) => trace.strings.get(name).to_owned(),
            Self::Call(name) => format!("(no operator) {}", trace.strings.get(name)),
            Self::Unrecorded => "(no operator) launch not recorded".to_owned(),
        }
    }
}

/// Activities of the scope by name, most device time first; equal times by name.
pub fn kernel_table(index: &TraceIndex<'_>, scope: &Scope) -> Vec<KernelRow> {
    let trace = index.trace();
    let activities = &trace.activities;
    let included = || (0..activities.len()).filter(|&row| scope.includes_activity(index, ActivityId::from_index(row)));

    // Where the rows of each name begin.
    let mut first = vec![0_u32; trace.strings.len() + 1];
    for row in included() {
        first[activities.name[row].index() + 1] += 1;
    }
    for name in 1..first.len() {
        first[name] += first[name - 1];
    }
    let mut next = first.clone();
    let mut by_name = vec![0_u32; first.last().map_or(0, |count| *count as usize)];
    let mut kinds = vec![None; trace.strings.len()];
    let mut launchers: HashMap<(StrId, Launcher), (u64, Ns), FixedState> = HashMap::default();
    for row in included() {
        let name = activities.name[row];
        let duration = activities.dur[row].max(Ns::ZERO);
        let slot = &mut next[name.index()];
        by_name[*slot as usize] = row as u32;
        *slot += 1;
        kinds[name.index()].get_or_insert(activities.kind[row]);
        let (calls, time) = launchers.entry((name, launcher(index, row))).or_insert((0, Ns::ZERO));
        *calls += 1;
        *time += duration;
    }

    let mut owners: Vec<Vec<(Launcher, u64, Ns)>> = vec![Vec::new(); trace.strings.len()];
    for ((name, launcher), (calls, time)) in launchers {
        owners[name.index()].push((launcher, calls, time));
    }
    let (mut rows, mut of_name) = (Vec::new(), Vec::new());
    for (name, kind) in kinds.iter().enumerate() {
        let Some(kind) = *kind else { continue };
        of_name.clear();
        of_name
            .extend(by_name[first[name] as usize..first[name + 1] as usize].iter().map(|&row| activities.dur[row as usize].max(Ns::ZERO)));
        let (min_ns, median_ns, max_ns) = extremes(&mut of_name);
        let full = trace.strings.get(StrId::from_index(name));
        let mut owners: Vec<_> = std::mem::take(&mut owners[name])
            .into_iter()
            .map(|(launcher, calls, cuda_ns)| KernelOwner { name: launcher.text(trace), calls, cuda_ns })
            .collect();
        owners.sort_by(|a, b| b.cuda_ns.cmp(&a.cuda_ns).then_with(|| a.name.cmp(&b.name)));
        rows.push(KernelRow {
            name: full.to_owned(),
            short_name: match kind {
                // The producer's labels of copies and fills are readable as they are.
                ActivityKind::Memcpy | ActivityKind::Memset if !full.is_empty() => full.to_owned(),
                _ => short_name(full),
            },
            kind,
            family: Family::of(kind, full),
            calls: of_name.len() as u64,
            cuda_ns: of_name.iter().copied().sum(),
            min_ns,
            median_ns,
            max_ns,
            owners,
        });
    }
    tell_apart(&mut rows);
    rows.sort_by(|a, b| b.cuda_ns.cmp(&a.cuda_ns).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn launcher(index: &TraceIndex<'_>, row: usize) -> Launcher {
    match index.links().owner(ActivityId::from_index(row)) {
        Owner::Op(node) => Launcher::Operator(index.tree().name(node)),
        Owner::LaunchedOutside(call) => Launcher::Call(index.trace().api_calls.name[call.index()]),
        Owner::Unrecorded => Launcher::Unrecorded,
    }
}

/// Minimum, lower median and maximum; reorders the slice.
fn extremes(durations: &mut [Ns]) -> (Ns, Ns, Ns) {
    let min = durations.iter().copied().min().unwrap_or_default();
    let max = durations.iter().copied().max().unwrap_or_default();
    let median = match durations.len() {
        0 => Ns::ZERO,
        count => *durations.select_nth_unstable((count - 1) / 2).1,
    };
    (min, median, max)
}

/// Marks short names that several rows share with a hash of the full name, with more digits where four are not enough.
fn tell_apart(rows: &mut [KernelRow]) {
    let mut names: Vec<(String, &str)> = rows.iter().map(|row| (row.short_name.clone(), row.name.as_str())).collect();
    mark_shared(&mut names);
    let names: Vec<String> = names.into_iter().map(|(short, _)| short).collect();
    for (row, short) in rows.iter_mut().zip(names) {
        row.short_name = short;
    }
}

/// The short form of each of these names, which differ; names of which it would be the same text are told apart by a hash of the
/// whole name, as in the kernel table.
pub fn short_names(full: &[&str]) -> Vec<String> {
    let mut names: Vec<(String, &str)> = full.iter().map(|&full| (short_name(full), full)).collect();
    mark_shared(&mut names);
    names.into_iter().map(|(short, _)| short).collect()
}

/// Pairs of short and full name; no two short names are the same afterwards, if no two full names are.
fn mark_shared(names: &mut [(String, &str)]) {
    let plain: Vec<String> = names.iter().map(|(short, _)| short.clone()).collect();
    for digits in [4, 8, 16] {
        let current: Vec<String> = names.iter().map(|(short, _)| short.clone()).collect();
        let mut count: HashMap<&str, u32, FixedState> = HashMap::default();
        for short in &current {
            *count.entry(short).or_insert(0) += 1;
        }
        if count.values().all(|&count| count == 1) {
            return;
        }
        for (((short_name, full), plain), short) in names.iter_mut().zip(&plain).zip(&current) {
            if count[short.as_str()] > 1 {
                *short_name = with_hash(plain, full, digits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::Sample;

    #[test]
    fn rows_have_exact_statistics_and_owners() {
        let mut sample = Sample::new();
        let op = sample.op("aten::mm", 0, 100);
        sample.launch("cudaLaunchKernel", op.start + 10, 5).kernel("gemm", 200, 7);
        sample.launch("cudaLaunchKernel", op.start + 20, 5).kernel("gemm", 300, 3);
        sample.launch("cudaGraphLaunch", 500, 5).kernel("gemm", 600, 10).kernel("gemm", 700, 4);
        sample.orphan("gemm", 800, 1);
        sample.launch("cudaMemcpyAsync", 900, 5).memcpy("Memcpy HtoD (Pageable -> Device)", 950, 2);
        let trace = sample.finish();
        let rows = kernel_table(&TraceIndex::new(&trace), &Scope::whole());
        assert_eq!(rows.len(), 2);
        let gemm = &rows[0];
        assert_eq!((gemm.calls, gemm.cuda_ns, gemm.min_ns, gemm.median_ns, gemm.max_ns), (5, Ns(25), Ns(1), Ns(4), Ns(10)));
        let owners: Vec<_> = gemm.owners.iter().map(|o| (o.name.as_str(), o.calls, o.cuda_ns.get())).collect();
        assert_eq!(owners, [("(no operator) cudaGraphLaunch", 2, 14), ("aten::mm", 2, 10), ("(no operator) launch not recorded", 1, 1)]);
        assert_eq!(rows[1].short_name, "Memcpy HtoD (Pageable -> Device)");
        assert_eq!(rows[1].family, Family::Memcpy);
    }

    #[test]
    fn names_that_shorten_alike_are_told_apart() {
        let mut sample = Sample::new();
        sample.launch("cudaLaunchKernel", 0, 5).kernel("void f_kernel<float, 1>(int)", 10, 1);
        sample.launch("cudaLaunchKernel", 6, 5).kernel("void f_kernel<float, 2>(int)", 20, 1);
        sample.launch("cudaLaunchKernel", 12, 5).kernel("void g_kernel<float, 2>(int)", 30, 1);
        let trace = sample.finish();
        let rows = kernel_table(&TraceIndex::new(&trace), &Scope::whole());
        let mut names: Vec<_> = rows.iter().map(|row| row.short_name.as_str()).collect();
        names.sort_unstable();
        assert!(names[0].starts_with("f<f32>#") && names[1].starts_with("f<f32>#") && names[0] != names[1], "{names:?}");
        assert_eq!(names[2], "g<f32>");
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_a_sorted_list(mut durations in proptest::collection::vec(0_i64..50, 1..40)) {
            let mut slice: Vec<Ns> = durations.iter().map(|&d| Ns(d)).collect();
            let found = extremes(&mut slice);
            durations.sort_unstable();
            let count = durations.len();
            prop_assert_eq!(found, (Ns(durations[0]), Ns(durations[(count - 1) / 2]), Ns(durations[count - 1])));
        }
    }
}
