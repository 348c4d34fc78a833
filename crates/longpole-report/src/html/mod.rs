//! A report as one HTML page: no network, no other file, and bounded in size whatever was read.
//!
//! [`html_document`] writes a command's own document, cut where it is long; [`HtmlPage`] puts documents and an [`Overview`] together.
//! `page` is the template, `data` the structs of the contract with the page's script (`web/src/data.ts`), `blob` packs numbers, `timeline`
//! and `places` turn an overview into both. Script and style are built from `web/` and embedded as they are committed in `assets/`.
//!
//! Everything from a trace is in the page as base64, but for the title and the text that is shown without scripts, which are escaped. The
//! script may only be the embedded one (by its hash), and nothing can be fetched or sent.

mod blob;
mod data;
mod document;
mod page;
mod places;
mod timeline;

use std::io;

use longpole_analysis::{Overview, StepTable, Triage};
use longpole_trace::Trace;
use serde_json::value::RawValue;

use blob::{Blob, packed};
use data::{CutOut, DocumentsOut, ReportOut};
pub use document::{HtmlCuts, HtmlLimits, html_document};

/// What a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtmlKind {
    /// A trace.
    Trace,
    /// A trace and one from before.
    TraceCompare,
    /// A report of Nsight Compute.
    Ncu,
    /// Two of them.
    NcuCompare,
    /// A source that holds sums alone.
    Sums,
}

impl HtmlKind {
    const fn code(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::TraceCompare => "trace_compare",
            Self::Ncu => "ncu",
            Self::NcuCompare => "ncu_compare",
            Self::Sums => "sums",
        }
    }
}

/// An overview with the tables that its names come from.
#[derive(Clone, Copy, Debug)]
pub struct HtmlOverview<'a> {
    /// The overview.
    pub overview: &'a Overview,
    /// The trace.
    pub trace: &'a Trace,
    /// The steps that it shows.
    pub steps: &'a StepTable,
    /// The first pass, whose suspects its moments are of.
    pub triage: &'a Triage,
}

/// What a page is made of.
#[derive(Debug)]
pub struct HtmlPage<'a> {
    /// What it is about.
    pub kind: HtmlKind,
    /// Its title.
    pub title: &'a str,
    /// The program and its version.
    pub made_by: &'a str,
    /// Documents by command.
    pub documents: Vec<(&'static str, Box<RawValue>)>,
    /// Those of the side before, of a comparison of traces.
    pub before: Option<Vec<(&'static str, Box<RawValue>)>>,
    /// What was cut so far.
    pub cuts: HtmlCuts,
    /// What can be seen over time.
    pub overview: Option<HtmlOverview<'a>>,
    /// What could be seen over time before; of a comparison of traces. Its lanes are all that is shown.
    pub before_overview: Option<HtmlOverview<'a>>,
    /// The first page as plain text, for a reader without scripts.
    pub text: &'a str,
    /// What the documents were cut to: names of moments are cut alike, so that they are found.
    pub limits: HtmlLimits,
    /// Bytes of names in a timeline; each is cut to its share of them.
    pub names_bytes: usize,
}

impl HtmlPage<'_> {
    /// The page, and everything that was cut to keep it small.
    ///
    /// # Errors
    /// When memory to pack it in runs out, in the words of the packer.
    pub fn write(self) -> io::Result<(Vec<u8>, HtmlCuts)> {
        let Self { kind, title, made_by, documents, before, mut cuts, overview, before_overview, text, limits, names_bytes } = self;
        let mut blob = Blob::default();
        let parts = overview.map(|overview| timeline::parts(&overview, &limits, names_bytes, &mut blob, &mut cuts)).unwrap_or_default();
        let before_timeline = (kind == HtmlKind::TraceCompare)
            .then(|| before_overview.and_then(|overview| timeline::timeline(&overview, "before.", names_bytes, &mut blob, &mut cuts)));
        let documents: DocumentsOut = documents.into_iter().collect();
        let before: Option<DocumentsOut> = before.map(|documents| documents.into_iter().collect());
        let report = ReportOut {
            schema: "longpole.report/1",
            kind: kind.code(),
            title,
            made_by,
            documents: &documents,
            before: before.as_ref(),
            cuts: cuts.lists().map(|(list, kept, of)| CutOut { list, kept, of }).collect(),
            timeline: parts.timeline,
            before_timeline,
            icicle: parts.icicle,
            curves: parts.curves,
            moments: parts.moments,
        };
        let report = serde_json::to_vec(&report)?;
        let (report, events) = rayon::join(|| packed(&report), || packed(blob.bytes()));
        Ok((page::page(title, text, &report?, &events?), cuts))
    }
}

#[cfg(test)]
mod tests;
