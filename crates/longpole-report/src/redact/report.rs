//! Secrets and identities in what is taken from an Nsight Compute report.
//!
//! Names are redacted before they are shortened, since half a secret is no longer recognisable. Words that come from this program
//! alone (verdicts, meanings of stalls, notes) hold none.

use longpole_ncu::compare::Comparison;
use longpole_ncu::source::SourceView;
use longpole_ncu::summary::KernelSummary;
use longpole_ncu::table::TableRow;
use longpole_ncu::{Trouble, Value};

use super::redact_string;
use crate::ncu::RawMetric;
use crate::report_header::ReportSource;

fn optional(text: &mut Option<String>) {
    text.iter_mut().for_each(redact_string);
}

/// Redacts names, ranges and the texts of rules.
pub fn redact_summary(summary: &mut KernelSummary) {
    redact_string(&mut summary.name);
    optional(&mut summary.function);
    for range in &mut summary.nvtx {
        redact_string(&mut range.name);
        optional(&mut range.domain);
    }
    for suggestion in &mut summary.suggestions {
        for text in [&mut suggestion.rule, &mut suggestion.title, &mut suggestion.section, &mut suggestion.text] {
            redact_string(text);
        }
    }
}

/// Redacts names and ranges.
pub fn redact_launches(rows: &mut [TableRow]) {
    for row in rows {
        redact_string(&mut row.name);
        optional(&mut row.function);
        optional(&mut row.nvtx);
    }
}

/// Redacts paths and texts of source files.
pub fn redact_source_view(view: &mut SourceView) {
    for row in &mut view.instructions {
        optional(&mut row.file);
        row.called_from.iter_mut().for_each(|call| redact_string(&mut call.file));
        if let Some(producer) = &mut row.producer {
            optional(&mut producer.file);
        }
    }
    for row in view.lines.iter_mut().chain(&mut view.kernel_lines) {
        optional(&mut row.file);
        optional(&mut row.text);
    }
}

fn value(value: &mut Option<Value>) {
    if let Some(Value::Text(text)) = value {
        redact_string(text);
    }
}

/// Redacts metrics that are texts, and what they are broken down by.
pub fn redact_metrics(metrics: &mut [RawMetric]) {
    for metric in metrics {
        redact_string(&mut metric.name);
        value(&mut metric.value);
        for instance in &mut metric.instances {
            value(&mut instance.id);
            value(&mut instance.value);
        }
    }
}

/// Redacts the path, the names of devices and programs and what was recorded of the command line.
pub fn redact_report_source(source: &mut ReportSource) {
    redact_string(&mut source.path);
    source.devices.iter_mut().for_each(|device| redact_string(&mut device.name));
    source.processes.iter_mut().for_each(redact_string);
    source.settings.iter_mut().for_each(|(_, value)| redact_string(value));
    for text in [&mut source.ncu_version, &mut source.cuda_version, &mut source.driver_version, &mut source.command_line] {
        optional(text);
    }
}

/// Redacts the examples of troubles.
pub fn redact_troubles(troubles: &mut [Trouble]) {
    for trouble in troubles {
        optional(&mut trouble.example);
    }
}

/// Redacts names, the texts of rules and of cautions.
pub fn redact_comparison(comparison: &mut Comparison) {
    comparison.cautions.iter_mut().for_each(|caution| redact_string(&mut caution.text));
    comparison.totals.iter_mut().for_each(|total| redact_string(&mut total.name));
    for pair in &mut comparison.pairs {
        redact_string(&mut pair.name_before);
        redact_string(&mut pair.name_after);
        for (rule, text) in pair.rules_gone.iter_mut().chain(&mut pair.rules_new) {
            redact_string(rule);
            redact_string(text);
        }
    }
    for (_, name) in comparison.only_before.iter_mut().chain(&mut comparison.only_after) {
        redact_string(name);
    }
}
