//! The report as the page reads it: the structs of `web/src/data.ts`, in which every field is described.

use serde::Serialize;
use serde_json::value::RawValue;

/// The documents of a report or of one side of it, by command.
pub(super) type DocumentsOut = std::collections::BTreeMap<&'static str, Box<RawValue>>;

#[derive(Serialize)]
pub(super) struct ReportOut<'a> {
    pub(super) schema: &'static str,
    pub(super) kind: &'static str,
    pub(super) title: &'a str,
    pub(super) made_by: &'a str,
    pub(super) documents: &'a DocumentsOut,
    pub(super) before: Option<&'a DocumentsOut>,
    pub(super) cuts: Vec<CutOut<'a>>,
    pub(super) timeline: Option<TimelineOut>,
    /// Of a comparison of traces alone; there, nothing when there was no timeline.
    #[expect(clippy::option_option, reason = "absent and null are two things in the contract")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before_timeline: Option<Option<TimelineOut>>,
    pub(super) icicle: Option<IcicleOut>,
    pub(super) curves: Vec<CurveOut>,
    pub(super) moments: Vec<MomentOut>,
}

#[derive(Serialize)]
pub(super) struct CutOut<'a> {
    pub(super) list: &'a str,
    pub(super) kept: u64,
    pub(super) of: u64,
}

/// Numbers packed in the bytes beside the report.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Stream {
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) n: usize,
    #[serde(rename = "as")]
    pub(super) form: &'static str,
}

#[derive(Serialize)]
pub(super) struct TimelineOut {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) names: Vec<String>,
    pub(super) name_family: Vec<i32>,
    pub(super) families: Vec<&'static str>,
    pub(super) details: Vec<String>,
    pub(super) lanes: Vec<LaneOut>,
    pub(super) events_total: u64,
    pub(super) events_kept: usize,
}

#[derive(Serialize)]
pub(super) struct LaneOut {
    pub(super) kind: &'static str,
    pub(super) group: String,
    pub(super) title: String,
    pub(super) rows: u32,
    pub(super) first: u32,
    pub(super) total: u64,
    pub(super) events: ColumnsOut,
    pub(super) complete: Vec<(u64, u64)>,
    pub(super) levels: Vec<LevelOut>,
}

#[derive(Serialize)]
pub(super) struct ColumnsOut {
    pub(super) n: usize,
    pub(super) start: Stream,
    pub(super) dur: Stream,
    pub(super) name: Stream,
    pub(super) row: Option<Stream>,
    pub(super) launch: Option<Stream>,
    pub(super) owner: Option<Stream>,
    pub(super) detail: Option<Stream>,
}

#[derive(Serialize)]
pub(super) struct LevelOut {
    pub(super) resolution_ns: i64,
    pub(super) n: usize,
    pub(super) start: Stream,
    pub(super) dur: Stream,
    pub(super) row: Option<Stream>,
    pub(super) count: Stream,
    pub(super) busy: Stream,
    pub(super) name: Stream,
}

#[derive(Serialize)]
pub(super) struct IcicleOut {
    pub(super) parent: Vec<i64>,
    pub(super) name: Vec<String>,
    pub(super) kind: Vec<&'static str>,
    pub(super) host_ns: Vec<Option<i64>>,
    pub(super) device_ns: Vec<i64>,
    pub(super) calls: Vec<u64>,
}

#[derive(Serialize)]
pub(super) struct CurveOut {
    pub(super) kind: &'static str,
    pub(super) title: String,
    pub(super) device: Option<i64>,
    pub(super) unit: &'static str,
    pub(super) t: Stream,
    pub(super) v: Stream,
}

#[derive(Serialize)]
pub(super) struct MomentOut {
    pub(super) of: String,
    pub(super) label: &'static str,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) lane: Option<u32>,
    pub(super) event: Option<u32>,
}
