//! The chosen kernels with everything that a page shows of them.

use std::sync::{Arc, Mutex, PoisonError};

use longpole_ncu::source::{self, Disassembly, SmVersion, SourceView};
use longpole_ncu::summary;
use longpole_ncu::{Page, ProfiledResult, Report, SourceData, units};
use longpole_report::{NcuKernel, RawMetric, count, redact_metrics, redact_source_view, redact_summary};
use rayon::prelude::*;
use regex::Regex;

use super::disassemble::Disassembler;
use super::open::{Chosen, Session};
use crate::exit::Failure;

/// What of a kernel is wanted besides its summary.
pub(super) struct Wanted<'a> {
    /// Samples by instruction.
    pub(super) source: bool,
    /// Metrics of these names.
    pub(super) metrics: Option<&'a Regex>,
}

/// Said of samples where there is only a table.
const NOT_IN_CSV: &str = "this CSV does not hold samples by instruction: open the .ncu-rep";

/// Most kernels that are shown in full at once: a page of each is kept until all are there.
const MOST_KERNELS: usize = 1 << 16;

/// Most raw metrics and instances that are kept at once, some gigabyte of them.
const MOST_VALUES: usize = 1 << 23;

/// Kernels whose raw metrics are decoded at a time.
const PIECE: usize = 64;

/// The code of the last kernel's module and how it is called; launches of one module mostly stand together.
type LastModule = Mutex<Option<(Option<usize>, Vec<u64>, Option<Arc<SourceData>>)>>;

/// The chosen kernels in full, as far as so many can be in memory.
pub(super) fn of(session: &Session<'_>, chosen: &[Chosen], wanted: &Wanted<'_>) -> Result<Vec<NcuKernel>, Failure> {
    if chosen.len() > MOST_KERNELS {
        let (most, all) = (count(MOST_KERNELS as u64), count(chosen.len() as u64));
        let message = format!(
            "at most {most} kernels are shown in full at once, and these are {all}: narrow them with --kernel or --id, or use --table"
        );
        return Err(Failure::Usage(message));
    }
    if wanted.metrics.is_none() {
        return Ok(piece(session, chosen, wanted));
    }
    let (mut kernels, mut values) = (Vec::with_capacity(chosen.len()), 0);
    for part in chosen.chunks(PIECE) {
        let part = piece(session, part, wanted);
        values += part.iter().flat_map(|kernel| kernel.metrics.iter().flatten()).map(|metric| metric.instances.len() + 1).sum::<usize>();
        if values > MOST_VALUES {
            let most = count(MOST_VALUES as u64);
            return Err(Failure::Usage(format!(
                "at most {most} values are shown at once: narrow them with a longer --metrics, --kernel or --id, or use --csv"
            )));
        }
        kernels.extend(part);
    }
    Ok(kernels)
}

/// Hands over the raw metrics of the chosen kernels piece by piece, without what they are broken down into.
pub(super) fn metrics_by_piece(
    session: &Session<'_>,
    chosen: &[Chosen],
    wanted: &Wanted<'_>,
    mut take: impl FnMut(Vec<NcuKernel>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    chosen.chunks(PIECE).try_for_each(|part| take(piece(session, part, wanted)))
}

fn piece(session: &Session<'_>, chosen: &[Chosen], wanted: &Wanted<'_>) -> Vec<NcuKernel> {
    let report = &session.report;
    let mut selection = summary::selection(report);
    if wanted.source {
        selection = source::selection(selection);
    }
    if let Some(regex) = wanted.metrics {
        selection = selection.values(|name| regex.is_match(name)).instances(|name| regex.is_match(name));
    }
    let module = LastModule::default();
    let disassembler = Disassembler::new(session.args.no_nvdisasm || !wanted.source);
    let kernel = |chosen: &Chosen| {
        let result = report.decode(chosen.id, &selection)?;
        let mut summary = summary::summarize(report, &result);
        let (mut view, source_notes) = if wanted.source { view_of(session, &result, &disassembler, &module) } else { (None, Vec::new()) };
        let mut metrics = wanted.metrics.map(|regex| metrics_of(&result, regex));
        if !session.args.no_redact {
            redact_summary(&mut summary);
            view.iter_mut().for_each(redact_source_view);
            if let Some(metrics) = &mut metrics {
                redact_metrics(metrics);
            }
        }
        Some(NcuKernel {
            process: session.process(summary.process),
            summary,
            short_name: chosen.short_name.clone(),
            family: chosen.family,
            source: view,
            source_notes,
            metrics,
        })
    };
    chosen.par_iter().filter_map(kernel).collect()
}

/// The source data of a result; that of the result before it is not read again.
fn source_of(report: &Report, result: &ProfiledResult, module: &LastModule) -> Option<Arc<SourceData>> {
    // Held while it is read, so that no other thread reads the same.
    let mut last = module.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, sources, data)) = &*last
        && (*process, sources) == (result.process, &result.sources)
    {
        return data.clone();
    }
    let data = report.source_of(result).map(Arc::new);
    *last = Some((result.process, result.sources.clone(), data.clone()));
    data
}

fn view_of(
    session: &Session<'_>,
    result: &ProfiledResult,
    disassembler: &Disassembler,
    module: &LastModule,
) -> (Option<SourceView>, Vec<String>) {
    if session.report.page() != Page::Whole {
        return (None, if session.args.view.source { vec![NOT_IN_CSV.to_owned()] } else { Vec::new() });
    }
    if source::sample_rows(result).is_empty() {
        // Without samples there is nothing to put beside the code.
        return (source::view_of(result, None, None), Vec::new());
    }
    let data = source_of(&session.report, result, module);
    let (mut text, mut problem): (Option<Disassembly>, Option<String>) = (None, None);
    if let (Some(data), Some(mangled)) = (&data, &result.mangled)
        && let Some(cubin) = &data.cubin
    {
        let revision = data.sm_revision.and_then(|revision| u32::try_from(revision).ok());
        let sm = revision.map(SmVersion::from_report).filter(|sm| sm.major > 0);
        match disassembler.run(cubin, sm, mangled) {
            Ok(found) => text = found,
            Err(error) => problem = Some(format!("nvdisasm was not of use: {error}")),
        }
    }
    let view = source::view_of(result, data.as_deref(), text.as_ref());
    let notes = view.iter().flat_map(|view| &view.notes).map(ToString::to_string).chain(problem).collect();
    (view, notes)
}

/// The metrics whose name matches, by name.
fn metrics_of(result: &ProfiledResult, regex: &Regex) -> Vec<RawMetric> {
    let matching = result.metrics.iter().filter(|(name, _)| regex.is_match(name));
    let mut metrics: Vec<RawMetric> = matching
        .map(|(name, metric)| RawMetric {
            name: name.to_owned(),
            unit: units::of_metric(name).unwrap_or_default().to_owned(),
            value: metric.value.clone(),
            instances: metric.instances.clone(),
        })
        .collect();
    metrics.sort_by(|a, b| a.name.cmp(&b.name));
    metrics
}
