//! Sort keys of the tables that torch has no names for.

use std::cmp::{Ordering, Reverse};

use longpole_analysis::{FamilyRow, KernelRow, MemoryRow, RangeRow};

use crate::exit::Failure;

/// An order of rows.
pub(crate) type Order<T> = fn(&T, &T) -> Ordering;

/// The names of a key, and its order. The first key is the default.
type Keys<T> = &'static [(&'static [&'static str], Order<T>)];

/// Compares by a number, largest first.
macro_rules! largest {
    ($field:ident) => {
        |a, b| b.$field.cmp(&a.$field)
    };
}

const KERNELS: Keys<KernelRow> = &[
    (&["cuda", "cuda_time_total", "self_cuda_time_total"], largest!(cuda_ns)),
    (&["calls", "count"], largest!(calls)),
    (&["min"], largest!(min_ns)),
    (&["median"], largest!(median_ns)),
    (&["max"], largest!(max_ns)),
    (&["name"], |a, b| a.name.cmp(&b.name)),
];

const FAMILIES: Keys<FamilyRow> = &[
    (&["cuda", "self_cuda", "cuda_time_total", "self_cuda_time_total", "share"], largest!(self_cuda_ns)),
    (&["calls", "count"], largest!(calls)),
    (&["name", "family"], |a, b| a.family.name().cmp(b.family.name())),
];

const RANGES: Keys<RangeRow> = &[
    (&["nesting"], |_, _| Ordering::Equal),
    (&["cpu", "host", "cpu_time_total"], largest!(cpu_ns)),
    (&["gpu_span"], largest!(gpu_span_ns)),
    (&["gpu_busy"], largest!(gpu_busy_ns)),
    (&["gpu_idle"], largest!(gpu_idle_ns)),
    (&["kernels"], largest!(kernels)),
    (&["calls", "count"], largest!(calls)),
    (&["name"], |a, b| (&a.name, &a.parents).cmp(&(&b.name, &b.parents))),
];

const MEMORY: Keys<MemoryRow> = &[
    (&["allocated"], largest!(allocated_bytes)),
    (&["freed"], largest!(freed_bytes)),
    (&["net"], largest!(net_bytes)),
    (&["peak"], largest!(peak_bytes)),
    (&["allocations"], largest!(allocations)),
    (&["calls", "count"], largest!(calls)),
    (&["name"], |a, b| (&a.name, Reverse(a.place)).cmp(&(&b.name, Reverse(b.place)))),
];

/// The order that `asked` names; `None` asks for the table's own.
fn find<T>(keys: Keys<T>, asked: Option<&str>) -> Result<Option<Order<T>>, Failure> {
    let Some(asked) = asked else { return Ok(None) };
    // The JSON key of a column and torch's newer spelling name it as well.
    let name = asked.replace("device", "cuda");
    let name = name.strip_suffix("_ns").or_else(|| name.strip_suffix("_bytes")).unwrap_or(&name);
    let found = keys.iter().find(|(names, _)| names.contains(&name)).map(|&(_, order)| order);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = keys.iter().map(|(names, _)| names[0]).collect();
        Failure::Usage(format!("unknown sort key `{asked}`; use one of {}", names.join(", ")))
    })
}

/// Order of kernels.
pub(crate) fn kernels(asked: Option<&str>) -> Result<Option<Order<KernelRow>>, Failure> {
    find(KERNELS, asked)
}

/// Order of families.
pub(crate) fn families(asked: Option<&str>) -> Result<Option<Order<FamilyRow>>, Failure> {
    find(FAMILIES, asked)
}

/// Order of ranges; `None` keeps them nested.
pub(crate) fn ranges(asked: Option<&str>) -> Result<Option<Order<RangeRow>>, Failure> {
    find(RANGES, asked.filter(|&key| key != "nesting"))
}

/// Order of allocations.
pub(crate) fn memory(asked: Option<&str>) -> Result<Option<Order<MemoryRow>>, Failure> {
    find(MEMORY, asked)
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
