//! `longpole.ranges/1`

use longpole_analysis::{RangePath, RangeRow};
use serde::{Serialize, Serializer};

use super::ns;
use crate::header::Header;

/// The names of a path, outermost first.
pub(super) struct Names<'a>(pub(super) &'a RangePath);

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.names())
    }
}

#[derive(Serialize)]
pub(super) struct Range<'a> {
    name: &'a str,
    parents: Names<'a>,
    depth: usize,
    calls: u64,
    cpu_ns: i64,
    gpu_span_ns: Option<i64>,
    gpu_busy_ns: Option<i64>,
    gpu_idle_ns: Option<i64>,
    kernels: u64,
    // Known of recordings that saw graphs being made.
    #[serde(flatten)]
    replayed: Option<Replayed>,
}

#[derive(Serialize)]
struct Replayed {
    replayed_ns: Option<i64>,
    replayed_kernels: u64,
}

#[derive(Serialize)]
struct Body<'a> {
    ranges: Vec<Range<'a>>,
}

pub(super) fn range(row: &RangeRow, has_replays: bool) -> Range<'_> {
    Range {
        name: &row.name,
        parents: Names(&row.parents),
        depth: row.parents.len(),
        calls: row.calls,
        cpu_ns: row.cpu_ns.get(),
        gpu_span_ns: ns(row.gpu_span_ns),
        gpu_busy_ns: ns(row.gpu_busy_ns),
        gpu_idle_ns: ns(row.gpu_idle_ns),
        kernels: row.kernels,
        replayed: has_replays.then(|| Replayed { replayed_ns: ns(row.replayed_ns), replayed_kernels: row.replayed_kernels }),
    }
}

/// The document of `longpole ranges`.
pub fn ranges<'a>(header: &Header<'a>, rows: &'a [RangeRow]) -> impl Serialize + 'a {
    let has_replays = rows.iter().any(|row| row.replayed_ns.is_some());
    super::document("longpole.ranges/1", header, Body { ranges: rows.iter().map(|row| range(row, has_replays)).collect() })
}
