//! Sort keys of the tables that torch has no names for.

use std::cmp::{Ordering, Reverse};

use longpole_analysis::{
    CauseRow, FamilyRow, FamilySum, FrameRow, KernelRow, KernelSum, MemoryRow, RangeRow, RankRow, RooflineRow, ScopeSum, SortKey,
};
use longpole_report::views::StepOrder;

use crate::exit::Failure;

/// An order of rows.
pub(crate) type Order<T> = fn(&T, &T) -> Ordering;

/// The names of a key, its order, and the column that shows it. The first key is the default.
type Keys<T> = &'static [(&'static [&'static str], Order<T>, &'static str)];

/// What `--sort` asks for.
#[derive(Debug)]
pub(crate) struct Sorting<T> {
    /// The order of the rows.
    pub(crate) order: Order<T>,
    /// The column that they are sorted by, which has to stay in sight.
    pub(crate) column: &'static str,
}

/// Compares by a number, largest first.
macro_rules! largest {
    ($field:ident) => {
        |a, b| b.$field.cmp(&a.$field)
    };
}

const KERNELS: Keys<KernelRow> = &[
    (&["cuda", "cuda_time_total", "self_cuda_time_total"], largest!(cuda_ns), "cuda_ns"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["min"], largest!(min_ns), "min_ns"),
    (&["median"], largest!(median_ns), "median_ns"),
    (&["max"], largest!(max_ns), "max_ns"),
    (&["name"], |a, b| a.name.cmp(&b.name), "name"),
];

const KERNEL_SUMS: Keys<KernelSum> = &[
    (&["cuda", "cuda_time_total", "self_cuda_time_total", "share"], largest!(cuda_ns), "cuda_ns"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["average"], largest!(average_ns), "average_ns"),
    (&["median"], largest!(median_ns), "median_ns"),
    (&["cycles"], largest!(cycles), "cycles"),
    (&["flops"], |a, b| by_number(a.work.flops_per_s, b.work.flops_per_s), "flops_per_s"),
    (&["bytes"], |a, b| by_number(a.work.bytes_per_s, b.work.bytes_per_s), "bytes_per_s"),
    (&["peak", "floor"], |a, b| by_number(a.work.floor_fraction, b.work.floor_fraction), "floor_fraction"),
    (&["name"], |a, b| a.name.cmp(&b.name), "name"),
];

const FAMILY_SUMS: Keys<FamilySum> = &[
    (&["cuda", "self_cuda", "cuda_time_total", "self_cuda_time_total", "share"], largest!(self_cuda_ns), "self_cuda_ns"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["name", "family"], |a, b| a.family.name().cmp(b.family.name()), "family"),
];

const SCOPE_SUMS: Keys<ScopeSum> = &[
    (&["nesting"], |_, _| Ordering::Equal, "name"),
    (&["cuda", "cuda_time_total", "share"], largest!(cuda_ns), "cuda_ns"),
    (&["self_cuda", "self_cuda_time_total"], largest!(self_cuda_ns), "self_cuda_ns"),
    (&["cpu", "host", "cpu_time_total"], largest!(cpu_ns), "cpu_ns"),
    (&["kernels", "calls", "count"], largest!(kernels), "kernels"),
    (&["flops"], |a, b| by_number(a.work.flops_per_s, b.work.flops_per_s), "flops_per_s"),
    (&["bytes"], |a, b| by_number(a.work.bytes_per_s, b.work.bytes_per_s), "bytes_per_s"),
];

const FAMILIES: Keys<FamilyRow> = &[
    (&["cuda", "self_cuda", "cuda_time_total", "self_cuda_time_total", "share"], largest!(self_cuda_ns), "self_cuda_ns"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["name", "family"], |a, b| a.family.name().cmp(b.family.name()), "family"),
];

const RANGES: Keys<RangeRow> = &[
    (&["nesting"], |_, _| Ordering::Equal, "name"),
    (&["cpu", "host", "cpu_time_total"], largest!(cpu_ns), "cpu_ns"),
    (&["gpu_span"], largest!(gpu_span_ns), "gpu_span_ns"),
    (&["gpu_busy"], largest!(gpu_busy_ns), "gpu_busy_ns"),
    (&["gpu_idle"], largest!(gpu_idle_ns), "gpu_idle_ns"),
    (&["kernels"], largest!(kernels), "kernels"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["name"], |a, b| (&a.name, &a.parents).cmp(&(&b.name, &b.parents)), "name"),
];

const MEMORY: Keys<MemoryRow> = &[
    (&["allocated"], largest!(allocated_bytes), "allocated_bytes"),
    (&["freed"], largest!(freed_bytes), "freed_bytes"),
    (&["net"], largest!(net_bytes), "net_bytes"),
    (&["peak"], largest!(peak_bytes), "peak_bytes"),
    (&["allocations"], largest!(allocations), "allocations"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["name"], |a, b| (&a.name, Reverse(a.place)).cmp(&(&b.name, Reverse(b.place))), "name"),
];

/// Orders of the causes and of the host frames of idle time.
type IdleOrder = (Order<CauseRow>, Order<FrameRow>);

/// The keys of idle time; they sort causes and host frames alike.
const IDLE: &[(&[&str], IdleOrder)] = &[
    (&["idle", "share", "time"], (largest!(idle_ns), largest!(idle_ns))),
    (&["intervals", "count", "calls"], (largest!(intervals), largest!(intervals))),
    (&["largest", "max"], (largest!(largest_ns), largest!(largest_ns))),
    (
        &["name", "cause"],
        (|a, b| a.cause.code().cmp(b.cause.code()), |a, b| (&a.name, &a.inside, a.cause).cmp(&(&b.name, &b.inside, b.cause))),
    ),
];

const ROOFLINE: Keys<RooflineRow> = &[
    (&["time", "device", "cuda", "share"], largest!(device_ns), "device_ns"),
    (&["above", "above_floor"], |a, b| b.above_floor_ns().cmp(&a.above_floor_ns()), "above_floor_ns"),
    (&["ratio", "time_over_floor"], |a, b| by_number(a.time_over_floor, b.time_over_floor), "time_over_floor"),
    (&["floor"], largest!(floor_ns), "floor_ns"),
    (&["calls", "count"], largest!(calls), "calls"),
    (&["flops"], |a, b| by_number(a.flops_per_s, b.flops_per_s), "flops_per_s"),
    (&["bytes"], |a, b| by_number(a.bytes_per_s, b.bytes_per_s), "bytes_per_s"),
    (&["name"], |a, b| (&a.name, &a.shapes).cmp(&(&b.name, &b.shapes)), "name"),
];

const RANKS: Keys<RankRow> = &[
    (&["rank", "name"], |a, b| a.number.cmp(&b.number), "rank"),
    (&["caused", "waiting_caused"], largest!(waiting_caused_ns), "waiting_caused_ns"),
    (&["waiting"], largest!(waiting_ns), "waiting_ns"),
    (&["compute"], largest!(compute_ns), "compute_ns"),
    (&["communication", "comm"], largest!(communication_ns), "communication_ns"),
    (&["exposed", "exposed_communication"], largest!(exposed_communication_ns), "exposed_communication_ns"),
    (&["idle"], largest!(idle_ns), "idle_ns"),
];

/// Largest first, what is missing last.
fn by_number(a: Option<f64>, b: Option<f64>) -> Ordering {
    let value = |number: Option<f64>| number.unwrap_or(f64::NEG_INFINITY);
    value(b).total_cmp(&value(a))
}

const STEPS: &[(&[&str], StepOrder)] = &[
    (&["part", "order", "role"], StepOrder::Part),
    (&["time", "share", "total", "per_step", "cuda"], StepOrder::Time),
    (&["spread"], StepOrder::Spread),
    (&["calls", "count"], StepOrder::Calls),
];

/// What `asked` names among `keys`.
fn named<T: Copy>(keys: &[(&[&str], T)], asked: &str) -> Result<T, Failure> {
    let name = asked.strip_suffix("_ns").unwrap_or(asked);
    keys.iter()
        .find(|(names, _)| names.contains(&name))
        .map(|&(_, order)| order)
        .ok_or_else(|| unknown(asked, keys.iter().map(|(names, _)| names[0])))
}

fn unknown<'k>(asked: &str, keys: impl Iterator<Item = &'k str>) -> Failure {
    Failure::Usage(format!("unknown sort key `{asked}`; use one of {}", keys.collect::<Vec<_>>().join(", ")))
}

/// The order that `asked` names; `None` asks for the table's own.
fn find<T>(keys: Keys<T>, asked: Option<&str>) -> Result<Option<Sorting<T>>, Failure> {
    let Some(asked) = asked else { return Ok(None) };
    // The JSON key of a column and torch's newer spelling name it as well.
    let name = asked.replace("device", "cuda");
    let name = name.strip_suffix("_ns").or_else(|| name.strip_suffix("_bytes")).unwrap_or(&name);
    let found = keys.iter().find(|(names, ..)| names.contains(&name)).map(|&(_, order, column)| Sorting { order, column });
    found.map(Some).ok_or_else(|| unknown(asked, keys.iter().map(|(names, ..)| names[0])))
}

/// The column of the operator table that shows a key.
pub(crate) const fn ops_column(key: SortKey) -> &'static str {
    match key {
        SortKey::CudaTimeTotal => "cuda_ns",
        SortKey::SelfCudaTimeTotal => "self_cuda_ns",
        SortKey::CpuTimeTotal => "cpu_ns",
        SortKey::SelfCpuTimeTotal => "self_cpu_ns",
        SortKey::Count => "calls",
        SortKey::CudaMemoryUsage => "cuda_mem_bytes",
        SortKey::CpuMemoryUsage => "cpu_mem_bytes",
        SortKey::SelfCudaMemoryUsage => "self_cuda_mem_bytes",
        SortKey::SelfCpuMemoryUsage => "self_cpu_mem_bytes",
    }
}

/// Order of kernels.
pub(crate) fn kernels(asked: Option<&str>) -> Result<Option<Sorting<KernelRow>>, Failure> {
    find(KERNELS, asked)
}

/// Order of families.
pub(crate) fn families(asked: Option<&str>) -> Result<Option<Sorting<FamilyRow>>, Failure> {
    find(FAMILIES, asked)
}

/// Order of ranges; `None` keeps them nested.
pub(crate) fn ranges(asked: Option<&str>) -> Result<Option<Sorting<RangeRow>>, Failure> {
    find(RANGES, asked.filter(|&key| key != "nesting"))
}

/// Order of kernels of sums.
pub(crate) fn kernel_sums(asked: Option<&str>) -> Result<Option<Sorting<KernelSum>>, Failure> {
    find(KERNEL_SUMS, asked)
}

/// Order of families of sums.
pub(crate) fn family_sums(asked: Option<&str>) -> Result<Option<Sorting<FamilySum>>, Failure> {
    find(FAMILY_SUMS, asked)
}

/// Order of scopes; `None` keeps them nested.
pub(crate) fn scope_sums(asked: Option<&str>) -> Result<Option<Sorting<ScopeSum>>, Failure> {
    find(SCOPE_SUMS, asked.filter(|&key| key != "nesting"))
}

/// Order of allocations.
pub(crate) fn memory(asked: Option<&str>) -> Result<Option<Sorting<MemoryRow>>, Failure> {
    find(MEMORY, asked)
}

/// Order of the roofline.
pub(crate) fn roofline(asked: Option<&str>) -> Result<Option<Sorting<RooflineRow>>, Failure> {
    find(ROOFLINE, asked)
}

/// Order of ranks.
pub(crate) fn ranks(asked: Option<&str>) -> Result<Option<Sorting<RankRow>>, Failure> {
    find(RANKS, asked)
}

/// Order of the rows of a step.
pub(crate) fn steps(asked: Option<&str>) -> Result<StepOrder, Failure> {
    asked.map_or(Ok(StepOrder::default()), |asked| named(STEPS, asked))
}

/// Orders of idle causes and host frames; `None` keeps the largest first.
pub(crate) fn idle(asked: Option<&str>) -> Result<Option<IdleOrder>, Failure> {
    asked.map(|asked| named(IDLE, asked)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_torch_and_json_spellings() {
        for key in ["cuda", "device_time_total", "cuda_ns", "count", "median", "median_ns"] {
            assert!(matches!(kernels(Some(key)), Ok(Some(_))), "{key}");
        }
        assert!(matches!(memory(Some("allocated_bytes")), Ok(Some(_))));
        assert!(matches!(ranges(Some("nesting")), Ok(None)));
        assert!(matches!(kernels(None), Ok(None)));
    }

    #[test]
    fn an_unknown_key_lists_the_known_ones() {
        let Err(Failure::Usage(message)) = families(Some("speed")) else { panic!("accepted") };
        assert_eq!(message, "unknown sort key `speed`; use one of cuda, calls, name");
    }
}
