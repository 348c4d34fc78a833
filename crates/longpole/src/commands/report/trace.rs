//! A page of a trace, or of a trace and one from before.

use std::io;

use longpole_analysis::{
    Diff, MemoryTable, NoPeaks, OverviewSources, Peaks, RooflineTable, ScopeWork, StepIdle, StepOptions, StepTable, Triage, TriageOptions,
    memory_table, overview, overview_lanes, roofline, step_ceilings_with, step_idle, step_table, triage,
};
use longpole_report::views::{StepLayout, StepOrder, Steps};
use longpole_report::{
    Grade, HtmlCuts, HtmlKind, HtmlLimits, HtmlOverview, HtmlPage, Page, TextOptions, count, html_document, triage_text, wire,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{MADE_BY, Out, WIDTH, first_page, size, title_of};
use crate::commands::{diff as compare, sort_ops, steps};
use crate::exit::Failure;
use crate::peaks;
use crate::session::{Beside, Session};

/// Rows of the tables in the text that a reader without scripts gets.
const HEAD: usize = 10;

/// Everything that is worked out about the trace.
struct Results {
    triage: Triage,
    steps: StepTable,
    idle: StepIdle,
    roofline: RooflineTable,
    memory: MemoryTable,
}

/// The trace before, and what is worked out about it.
struct Earlier {
    side: Beside,
    diff: Diff,
    triage: Triage,
    steps: StepTable,
    idle: StepIdle,
}

pub(super) fn run(out: &Out<'_>, session: &mut Session<'_>) -> Result<(), Failure> {
    let args = out.args;
    let measured = args.peaks.as_deref().map(peaks::read).transpose()?;
    let known = peaks::of_session(session, measured)?;
    let options = TriageOptions {
        workload: session.shown(args.workload.as_deref()),
        unprofiled_step: args.unprofiled_step_ms,
        is_cut: session.is_cut(),
        full_names: args.common.full_names,
    };
    let (mut results, work) = results(session, out, &options, &known);
    let lent = match &args.roles_from {
        Some(donor) => steps::borrow(session, &mut results.steps, donor, known.as_ref().ok(), args.ignore_ranges)?,
        None => Vec::new(),
    };
    let ceilings = step_ceilings_with(&work, &results.steps, &lent, &results.idle);
    drop(work);
    sort_ops(&mut results.triage.ops);
    let compared = match &args.before {
        Some(before) => {
            let (before, diff) = compare::with(session, &results.triage, before, args.ignore_ranges)?;
            let options = TriageOptions { is_cut: before.is_cut(), ..TriageOptions::default() };
            let mut first = triage(&before.index, &before.scope, &options);
            sort_ops(&mut first.ops);
            let (steps, idle) = {
                let (index, scope) = (&before.index, &before.scope);
                let steps = step_table(index, scope, &StepOptions { ignore_ranges: args.ignore_ranges, ..StepOptions::default() });
                let idle = step_idle(&ScopeWork::find(index, scope, None), &steps);
                (steps, idle)
            };
            Some(Earlier { side: before, diff, triage: first, steps, idle })
        }
        None => None,
    };
    session.analysed();
    if results.triage.host_clock.as_ref().is_some_and(|clock| clock.calibration.is_some()) {
        session.is_calibrated();
    }
    let (header, trace) = (session.header(), session.index.trace());
    let options = TextOptions { width: WIDTH, color: false, full_names: args.common.full_names, wrap: true };
    let page = Page { limit: Some(HEAD), ..Page::default() };
    let text = first_page(triage_text(&header, &results.triage, trace, &page, &options));
    let path = session.source_path();
    let of_before = compared.as_ref().map(|before| before.side.header().source.path.clone());
    let title = title_of(path, of_before.as_deref());
    let layout = StepLayout { order: StepOrder::default(), limit: None, by_kernel: false, full_names: args.common.full_names };
    let (mut total, mut kept) = (0, 0);
    let (html, cuts) = size::fitting(|room| {
        let mut cuts = HtmlCuts::default();
        let sources = OverviewSources {
            triage: &results.triage,
            steps: &results.steps,
            idle: &results.idle.table,
            stretches: &results.idle.stretches,
        };
        let overview = overview(&session.index, &session.scope, &sources, &room.overview);
        (total, kept) = (overview.events_total, overview.events_kept() as u64);
        let mut documents = Documents { limits: &room.limits, cuts: &mut cuts, made: Vec::new() };
        documents.add("triage", &wire::triage(&header, &results.triage, trace))?;
        let report = Steps { table: &results.steps, ceilings: &ceilings, peaks: known.as_ref(), recorded: None };
        documents.add("steps", &wire::steps(&header, &report, trace, &layout))?;
        documents.add("idle", &wire::idle(&header, &results.idle.table, trace))?;
        documents.add("roofline", &wire::roofline(&header, &results.roofline, known.as_ref().err()))?;
        if !trace.memory.is_empty() {
            documents.add("memory", &wire::memory(&header, &results.memory))?;
        }
        let (mut before, mut before_lanes) = (None, None);
        if let Some(Earlier { side, diff, triage: first, steps, idle }) = &compared {
            let sources = OverviewSources { triage: first, steps, idle: &idle.table, stretches: &idle.stretches };
            before_lanes = Some((overview_lanes(&side.index, &side.scope, &sources, &room.overview), side, first, steps));
            documents.add("diff", &wire::diff(&side.header(), &header, diff, None))?;
            let mut of_before = Documents { limits: &room.limits, cuts: documents.cuts, made: Vec::new() };
            of_before.add("triage", &wire::triage(&side.header(), first, side.index.trace()))?;
            before = Some(of_before.made);
        }
        let documents = documents.made;
        let page = HtmlPage {
            kind: if compared.is_some() { HtmlKind::TraceCompare } else { HtmlKind::Trace },
            title: &title,
            made_by: MADE_BY,
            documents,
            before,
            cuts,
            overview: Some(HtmlOverview { overview: &overview, trace, steps: &results.steps, triage: &results.triage }),
            text: &text,
            before_overview: before_lanes.as_ref().map(|(overview, side, triage, steps)| HtmlOverview {
                overview,
                trace: side.index.trace(),
                steps,
                triage,
            }),
            limits: room.limits,
            names_bytes: room.names_bytes,
        };
        Ok(page.write()?)
    })?;
    let singly = if kept < total { format!(" ({} one by one, the others in blocks)", count(kept)) } else { String::new() };
    out.write(&html, &cuts, &format!("{} events{singly}, ", count(total)))?;
    if header.trust.grade != Grade::Good {
        session.trust_to_stderr();
    }
    session.finish()?;
    compared.map_or(Ok(()), |before| session.judge(&before.side))
}

/// Documents in the making.
struct Documents<'a> {
    limits: &'a HtmlLimits,
    cuts: &'a mut HtmlCuts,
    made: Vec<(&'static str, Box<RawValue>)>,
}

impl Documents<'_> {
    fn add(&mut self, name: &'static str, document: &impl Serialize) -> Result<(), Failure> {
        self.made.push((name, html_document(name, document, self.limits, self.cuts).map_err(io::Error::from)?));
        Ok(())
    }
}

/// All analyses; the first pass beside everything else.
fn results<'s>(
    session: &'s Session<'_>,
    out: &Out<'_>,
    options: &TriageOptions,
    known: &'s Result<Peaks, NoPeaks>,
) -> (Results, ScopeWork<'s, 'static>) {
    let (index, scope, peaks) = (&session.index, &session.scope, known.as_ref().ok());
    // The links are there before, so that none waits for another inside.
    index.links();
    let ((triage, memory, roofline), (steps, work, idle)) = rayon::join(
        || (triage(index, scope, options), memory_table(index, scope), roofline(index, scope, peaks)),
        || {
            let (steps, work) = rayon::join(
                || steps::find(session, None, StepOptions { ignore_ranges: out.args.ignore_ranges, ..StepOptions::default() }),
                || ScopeWork::find(index, scope, peaks),
            );
            let idle = step_idle(&work, &steps);
            (steps, work, idle)
        },
    );
    (Results { triage, steps, idle, roofline, memory }, work)
}
