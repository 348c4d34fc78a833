//! `longpole.kernels/1`

use longpole_analysis::{KernelOwner, KernelRow};
use longpole_trace::ActivityKind;
use serde::Serialize;

use crate::header::Header;

#[derive(Serialize)]
pub(super) struct Kernel<'a> {
    name: &'a str,
    short_name: &'a str,
    kind: &'static str,
    family: &'static str,
    calls: u64,
    cuda_ns: i64,
    min_ns: i64,
    median_ns: i64,
    max_ns: i64,
    op: Option<&'a str>,
    ops: Vec<Owner<'a>>,
}

#[derive(Serialize)]
struct Owner<'a> {
    name: &'a str,
    calls: u64,
    cuda_ns: i64,
}

#[derive(Serialize)]
struct Body<'a> {
    kernels: Vec<Kernel<'a>>,
}

pub(super) fn kernel(row: &KernelRow) -> Kernel<'_> {
    Kernel {
        name: &row.name,
        short_name: &row.short_name,
        kind: match row.kind {
            ActivityKind::Kernel => "kernel",
            ActivityKind::Memcpy => "memcpy",
            ActivityKind::Memset => "memset",
            ActivityKind::Other => "other",
        },
        family: row.family.name(),
        calls: row.calls,
        cuda_ns: row.cuda_ns.get(),
        min_ns: row.min_ns.get(),
        median_ns: row.median_ns.get(),
        max_ns: row.max_ns.get(),
        op: row.owners.first().map(|owner| owner.name.as_str()),
        ops: row.owners.iter().map(owner).collect(),
    }
}

fn owner(owner: &KernelOwner) -> Owner<'_> {
    Owner { name: &owner.name, calls: owner.calls, cuda_ns: owner.cuda_ns.get() }
}

/// The document of `longpole kernels`.
pub fn kernels<'a>(header: &Header<'a>, rows: &'a [KernelRow]) -> impl Serialize + 'a {
    super::document("longpole.kernels/1", header, Body { kernels: rows.iter().map(kernel).collect() })
}
