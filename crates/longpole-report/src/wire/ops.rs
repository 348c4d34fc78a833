//! `longpole.ops/1`

use longpole_analysis::{GroupBy, OpRow, OpRowKind, OpTable};
use serde::Serialize;

use super::ns;
use crate::header::Header;

#[derive(Serialize)]
pub(super) struct Op<'a> {
    name: &'a str,
    kind: &'static str,
    shapes: Option<&'a str>,
    stack: Option<&'a [String]>,
    calls: u64,
    self_cpu_ns: Option<i64>,
    cpu_ns: Option<i64>,
    self_cuda_ns: Option<i64>,
    cuda_ns: Option<i64>,
    self_cpu_mem_bytes: Option<i64>,
    cpu_mem_bytes: Option<i64>,
    self_cuda_mem_bytes: Option<i64>,
    cuda_mem_bytes: Option<i64>,
}

#[derive(Serialize)]
struct Body<'a> {
    group_by: &'static str,
    self_cpu_total_ns: i64,
    self_cuda_total_ns: Option<i64>,
    ops: Vec<Op<'a>>,
}

pub(super) fn op(row: &OpRow) -> Op<'_> {
    Op {
        name: &row.name,
        kind: match row.kind {
            OpRowKind::Operator => "operator",
            OpRowKind::ApiCall => "api_call",
            OpRowKind::NoOperator => "no_operator",
        },
        shapes: row.shapes.as_deref(),
        stack: row.stack.as_deref(),
        calls: row.calls,
        self_cpu_ns: ns(row.self_cpu_ns),
        cpu_ns: ns(row.cpu_ns),
        self_cuda_ns: ns(row.self_cuda_ns),
        cuda_ns: ns(row.cuda_ns),
        self_cpu_mem_bytes: row.self_cpu_mem_bytes,
        cpu_mem_bytes: row.cpu_mem_bytes,
        self_cuda_mem_bytes: row.self_cuda_mem_bytes,
        cuda_mem_bytes: row.cuda_mem_bytes,
    }
}

/// The document of `longpole ops`. The totals are those of the scope, whatever rows are listed.
pub fn ops<'a>(header: &Header<'a>, table: &'a OpTable, by: GroupBy) -> impl Serialize + 'a {
    let body = Body {
        group_by: match by {
            GroupBy::Name => "name",
            GroupBy::Shape => "shape",
            GroupBy::Stack(_) => "stack",
        },
        self_cpu_total_ns: table.self_cpu_total_ns.get(),
        self_cuda_total_ns: ns(table.self_cuda_total_ns),
        ops: table.rows.iter().map(op).collect(),
    };
    super::document("longpole.ops/1", header, body)
}
