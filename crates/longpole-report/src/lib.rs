//! Results of the analyses as terminal text, Markdown, CSV and versioned JSON.
//!
//! Two halves that do not know each other. [`wire`] holds the JSON structs, one module a command, each with a JSON Schema in
//! `docs/schema/`. [`views`] turns results into [`Table`]s of typed cells, and the renderers ([`text`], [`markdown`],
//! [`csv()`]) lay any table out. Times and sizes stay integers until the last step, where a unit is chosen for a whole column.
//!
//! Names come from the trace and may hold anything: text, Markdown and CSV neutralise control characters, Markdown
//! markup and CSV formulas as well, JSON keeps them as they are, with what would act on a terminal written as escapes.
//!
//! What must not leave the machine is gone before either half sees it: [`redact_trace`] and [`redact()`] take credentials and
//! identities out of a trace and of everything else that is printed.
//!
//! To add a command, add a view, a wire module and a schema; the renderers need no change.

mod bench;
mod blocks;
mod check;
mod chrome;
mod csv_table;
mod doctor;
mod formats;
mod header;
mod html;
mod markdown_table;
mod names;
mod ncu;
mod perfetto;
mod redact;
mod report_header;
mod rows;
mod stacks;
mod style;
mod sums_page;
mod suspects;
mod table;
mod text_table;
mod triage_page;
mod trust;
mod units;
pub mod views;
pub mod wire;

pub use bench::{
    BenchCompared, BenchComparison, BenchList, BenchListed, BenchPeak, BenchPeaks, BenchReport, BenchRow, BenchShare, BenchSide,
    BenchSource, BenchUnpaired,
};
pub use blocks::{Bar, Block, Strip, blocks_markdown, blocks_text};
pub use check::{Amount, CheckBound, CheckReport, CheckUnit, CheckVerdict, CheckedLimit};
pub use chrome::{ChromeError, ChromeOrigin, ChromeSummary, ChromeTrace};
pub use csv_table::csv;
pub use doctor::{doctor_markdown, doctor_text, redact_diagnosis};
pub use formats::{FormatRow, Support, formats_csv, formats_markdown, formats_text};
pub use header::{Header, Source, markdown_header, text_header, text_trust};
pub use html::{HtmlCuts, HtmlKind, HtmlLimits, HtmlOverview, HtmlPage, html_document};
pub use markdown_table::markdown;
pub use names::{csv_cell, ellipsis, markdown_text, printable};
pub use ncu::{
    ComparisonPage, KernelPage, NcuKernel, RawMetric, Verdicts, comparison_markdown, comparison_text, kernel_lines, kernels_markdown,
    kernels_text, sources_markdown, sources_text, tables_markdown, tables_text,
};
pub use perfetto::{PerfettoSummary, perfetto};
pub use redact::{redact, redact_problems, redact_string, redact_trace};
pub use redact::{
    redact_comparison, redact_launches, redact_metrics, redact_report_source, redact_source_view, redact_summary, redact_troubles,
};
pub use report_header::{
    ReportDevice, ReportHeader, ReportSource, comparison_markdown_header, comparison_text_header, report_markdown_header,
    report_text_header,
};
pub use rows::{RowTable, has_events, write_rows};
pub use stacks::{Profile, StackSummary, collapsed, speedscope};
pub use style::Style;
pub use sums_page::{sums_markdown, sums_report_lines, sums_text};
pub use suspects::{explain_list, explain_markdown, explain_text};
pub use table::{Column, Kind, Row, Table, Value};
pub use text_table::{TextOptions, text};
pub use triage_page::{Page, report_lines, triage_markdown, triage_text};
pub use trust::{Grade, Note, Trust};
pub use units::{bytes, clock, count, decimal, rate, time};
