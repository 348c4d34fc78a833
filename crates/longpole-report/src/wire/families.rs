//! `longpole.families/1`

use longpole_analysis::FamilyRow;
use serde::Serialize;

use crate::header::Header;

#[derive(Serialize)]
pub(super) struct Family {
    #[serde(rename = "family")]
    name: &'static str,
    calls: u64,
    self_cuda_ns: i64,
    share_fraction: Option<f64>,
}

#[derive(Serialize)]
struct Body {
    families: Vec<Family>,
}

pub(super) fn family(row: &FamilyRow) -> Family {
    Family { name: row.family.name(), calls: row.calls, self_cuda_ns: row.self_cuda_ns.get(), share_fraction: row.share_fraction }
}

/// The document of `longpole families`.
pub fn families<'a>(header: &Header<'a>, rows: &'a [FamilyRow]) -> impl Serialize + 'a {
    super::document("longpole.families/1", header, Body { families: rows.iter().map(family).collect() })
}
