//! The chosen kernels with everything that a page shows of them.

use longpole_ncu::source::{self, Disassembly, SmVersion, SourceView};
use longpole_ncu::summary;
use longpole_ncu::{ProfiledResult, units};
use longpole_report::{NcuKernel, RawMetric, redact_metrics, redact_source_view, redact_summary};
use rayon::prelude::*;
use regex::Regex;

use super::disassemble::Disassembler;
use super::open::{Chosen, Session};

/// What of a kernel is wanted besides its summary.
pub(super) struct Wanted<'a> {
    /// Samples by instruction.
    pub(super) source: bool,
    /// Metrics of these names.
    pub(super) metrics: Option<&'a Regex>,
}

/// Decodes one after the other, so that a large report is never in memory as a whole.
pub(super) fn of(session: &Session<'_>, chosen: &[Chosen], wanted: &Wanted<'_>) -> Vec<NcuKernel> {
    let report = &session.report;
    let mut selection = summary::selection(report);
    if wanted.source {
        selection = source::selection(selection);
    }
    if let Some(regex) = wanted.metrics {
        selection = selection.values(|name| regex.is_match(name)).instances(|name| regex.is_match(name));
    }
    let disassembler = Disassembler::new(session.args.no_nvdisasm || !wanted.source);
    let kernel = |chosen: &Chosen| {
        let result = report.decode(chosen.id, &selection)?;
        let mut summary = summary::summarize(report, &result);
        let (mut view, source_notes) = if wanted.source { view_of(session, &result, &disassembler) } else { (None, Vec::new()) };
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

fn view_of(session: &Session<'_>, result: &ProfiledResult, disassembler: &Disassembler) -> (Option<SourceView>, Vec<String>) {
    let data = session.report.source_of(result);
    let (mut text, mut problem): (Option<Disassembly>, Option<String>) = (None, None);
    if let (Some(data), Some(mangled)) = (&data, &result.mangled)
        && let Some(cubin) = &data.cubin
        && !source::sample_rows(result).is_empty()
    {
        let revision = data.sm_revision.and_then(|revision| u32::try_from(revision).ok());
        let sm = revision.map(SmVersion::from_report).filter(|sm| sm.major > 0);
        match disassembler.run(cubin, sm, mangled) {
            Ok(found) => text = found,
            Err(error) => problem = Some(format!("nvdisasm was not of use: {error}")),
        }
    }
    let view = source::view_of(result, data.as_ref(), text.as_ref());
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
