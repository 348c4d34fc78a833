//! The JSON contract: one struct a document, apart from the analyses so that neither can change the other by accident.
//!
//! Keys are only added within a version. Times are integer `*_ns`, sizes integer `*_bytes`, shares 0..1 `*_fraction`, and
//! what was not recorded is `null`. Each document has a JSON Schema in `docs/schema/`, against which every test validates.

mod bench;
mod check;
mod diff;
mod doctor;
mod explain;
mod families;
mod formats;
mod harmless;
mod idle;
mod kernels;
mod memory;
mod ncu;
mod ops;
mod ranges;
mod ranks;
mod roofline;
mod smells;
mod steps;
mod sums;
mod triage;

pub use bench::{bench, bench_compare, bench_list, bench_peaks};
pub use check::check;
pub use diff::diff;
pub use doctor::doctor;
pub use explain::explain;
pub use families::families;
pub use formats::formats;
pub use idle::idle;
pub use kernels::kernels;
pub use memory::memory;
pub use ncu::{NcuDocument, ncu, ncu_compare};
pub use ops::ops;
pub use ranges::ranges;
pub use ranks::ranks;
pub use roofline::roofline;
pub use steps::steps;
pub use sums::{family_sums, kernel_sums, scope_sums, sums_triage};
pub use triage::{triage, triage_compared};

use std::io;

use longpole_trace::{DeviceId, Ns, Trace};
use serde::Serialize;

use crate::header::Header;

/// Writes a document as indented JSON with a final newline. Characters that would act on a terminal are escaped.
pub fn write(mut out: impl io::Write, document: &impl Serialize) -> io::Result<()> {
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut out, harmless::Harmless::new()))?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct SourceOut<'a> {
    path: &'a str,
    format: &'a str,
    bytes: u64,
    events: u64,
}

#[derive(Serialize)]
struct TrustOut<'a> {
    grade: &'static str,
    notes: Vec<NoteOut<'a>>,
}

#[derive(Serialize)]
struct NoteOut<'a> {
    code: &'static str,
    severity: &'static str,
    count: u64,
    message: &'a str,
    hint: &'static str,
    example: Option<&'a str>,
    first_offset_bytes: Option<u64>,
    time_ns: Option<i64>,
}

#[derive(Serialize)]
struct ScopeOut<'a> {
    range: Option<&'a str>,
    step: Option<u64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    device: Option<i64>,
    rank: Option<u32>,
}

/// Every document: the keys all of them share, then the command's own.
#[derive(Serialize)]
struct Document<'a, Body> {
    schema: &'static str,
    source: SourceOut<'a>,
    trust: TrustOut<'a>,
    scope: ScopeOut<'a>,
    #[serde(flatten)]
    body: Body,
}

fn document<'a, Body>(schema: &'static str, header: &Header<'a>, body: Body) -> Document<'a, Body> {
    let Header { source, trust, scope } = *header;
    let notes = trust.notes.iter().map(|note| NoteOut {
        code: note.code,
        severity: note.severity.name(),
        count: note.count,
        message: &note.message,
        hint: note.hint,
        example: note.example.as_deref(),
        first_offset_bytes: note.first_offset,
        time_ns: ns(note.time),
    });
    Document {
        schema,
        source: SourceOut { path: &source.path, format: &source.format, bytes: source.bytes, events: source.events },
        trust: TrustOut { grade: trust.grade.name(), notes: notes.collect() },
        scope: ScopeOut {
            range: scope.range.as_deref(),
            step: scope.step,
            start_ns: scope.time.map(|(start, _)| start.get()),
            end_ns: scope.time.map(|(_, end)| end.get()).filter(|&end| end != Ns::MAX.get()),
            device: scope.device,
            rank: scope.rank,
        },
        body,
    }
}

/// A device, by its number and the rank it belongs to.
#[derive(Serialize)]
struct DeviceOut {
    device: Option<i64>,
    rank: Option<u32>,
}

fn device(trace: &Trace, id: DeviceId) -> DeviceOut {
    let device = trace.devices.get(id.index());
    let rank = device.and_then(|device| trace.ranks.get(device.rank as usize));
    DeviceOut { device: device.map(|device| device.ordinal), rank: rank.map(|rank| rank.rank) }
}

fn ns(value: Option<Ns>) -> Option<i64> {
    value.map(Ns::get)
}
