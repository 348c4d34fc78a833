//! From a result of a report to the input of a source view: which of its metrics were recorded by instruction, and at which addresses.
//!
//! A metric that was recorded by instruction has an instance for each address it was seen at, and the address is a virtual one of the GPU.
//! Not everything with such a name is: `warpsampling:` metrics are series over time, with time stamps in place of addresses.

use std::collections::BTreeMap;

use super::cubin::SmVersion;
use super::nvdisasm::Disassembly;
use super::view::{SampleRow, SourceInput, SourceView, StallCount, source_view};
use crate::metrics::Metric;
use crate::result::{ProfiledResult, Selection};
use crate::source_data::SourceData;

/// Samples by reason; the reason follows.
const STALL: &str = "smsp__pcsamp_warps_issue_stalled_";

/// Of samples by reason: only those of cycles in which the scheduler issued nothing.
const NOT_ISSUED: &str = "_not_issued";

/// All samples.
const SAMPLES: &str = "smsp__pcsamp_sample_count";

/// Warp-level executions.
const EXECUTED: &str = "inst_executed";

/// Thread-level executions.
const THREADS_EXECUTED: &str = "thread_inst_executed";

/// Where the functions of a kernel were loaded, the kernel first.
const FUNCTION_ADDRESSES: &str = "launch__function_pcs";

fn is_by_instruction(name: &str) -> bool {
    matches!(name, SAMPLES | EXECUTED | THREADS_EXECUTED | FUNCTION_ADDRESSES) || name.starts_with(STALL)
}

/// Adds what [`view_of`] needs.
#[must_use]
pub fn selection(wanted: Selection) -> Selection {
    wanted.instances(is_by_instruction)
}

/// One name for a reason of which the two families of metrics have different ones.
fn reason_of(name: &str) -> &str {
    match name {
        "no_instructions" => "no_instruction",
        "warpgroup_arrive" => "gmma",
        name => name,
    }
}

/// The counts of a metric that was recorded by instruction, by address; those that are no whole numbers are left out.
fn counts(metric: &Metric) -> impl Iterator<Item = (u64, u64)> + '_ {
    let instances = if metric.is_series { &[][..] } else { &metric.instances };
    instances.iter().filter_map(|instance| Some((instance.id.as_ref()?.count()?, instance.value.as_ref()?.count()?)))
}

/// What was recorded by instruction, by ascending address. Empty where nothing was.
pub fn sample_rows(result: &ProfiledResult) -> Vec<SampleRow> {
    let mut rows: BTreeMap<u64, SampleRow> = BTreeMap::new();
    let mut has_samples = false;
    for (name, metric) in result.metrics.iter().filter(|(name, _)| is_by_instruction(name)) {
        let reason = name.strip_prefix(STALL);
        for (address, count) in counts(metric) {
            if name == FUNCTION_ADDRESSES {
                continue;
            }
            let row = rows.entry(address).or_insert_with(|| SampleRow { address, ..SampleRow::default() });
            match (name, reason.map(|reason| (reason.strip_suffix(NOT_ISSUED), reason))) {
                (_, Some((Some(_), _))) => row.not_issued = Some(row.not_issued.unwrap_or(0).saturating_add(count)),
                (_, Some((None, reason))) if count > 0 => {
                    row.stalls.push(StallCount { reason: reason_of(reason).to_owned(), samples: count });
                }
                (SAMPLES, _) => {
                    has_samples = true;
                    row.samples = row.samples.saturating_add(count);
                }
                (EXECUTED, _) => row.executed = Some(row.executed.unwrap_or(0).saturating_add(count)),
                (THREADS_EXECUTED, _) => row.threads_executed = Some(row.threads_executed.unwrap_or(0).saturating_add(count)),
                _ => {}
            }
        }
    }
    for row in rows.values_mut() {
        row.stalls.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.reason.cmp(&b.reason)));
        if !has_samples {
            row.samples = row.stalls.iter().map(|stall| stall.samples).fold(0, u64::saturating_add);
        }
    }
    rows.into_values().collect()
}

/// Where the kernel was loaded: the source data says so for its function; older reports have it in a metric.
fn base_address(result: &ProfiledResult, data: Option<&SourceData>) -> Option<u64> {
    let told = data.zip(result.mangled.as_deref()).and_then(|(data, mangled)| data.address_of(mangled));
    told.or_else(|| result.metrics.get(FUNCTION_ADDRESSES)?.instances.first()?.value.as_ref()?.count())
}

/// The source view of a result; `None` where nothing was recorded by instruction. `data` is what
/// [`Report::source_of`](crate::Report::source_of) gives, `disassembly` what `nvdisasm` made of its cubin.
pub fn view_of(result: &ProfiledResult, data: Option<&SourceData>, disassembly: Option<&Disassembly>) -> Option<SourceView> {
    let rows = sample_rows(result);
    if rows.is_empty() {
        return None;
    }
    let files: Vec<(&str, &str)> =
        data.iter().flat_map(|data| &data.files).filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?))).collect();
    let revision = data.and_then(|data| data.sm_revision).and_then(|revision| u32::try_from(revision).ok());
    Some(source_view(&SourceInput {
        cubin: data.and_then(|data| data.cubin.as_deref()),
        function: result.mangled.as_deref().unwrap_or_default(),
        base_address: base_address(result, data),
        sm: revision.map(SmVersion::from_report).filter(|sm| sm.major > 0),
        rows: &rows,
        files: &files,
        disassembly,
    }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::report::Report;

    fn view(name: &str, id: usize) -> Option<SourceView> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ncu").join(name);
        let report = Report::open(&path).expect("the corpus is there");
        let result = report.decode(id, &selection(report.select())).expect("decoded");
        view_of(&result, report.source_of(&result).as_ref(), None)
    }

    #[test]
    fn samples_of_a_recorded_kernel_add_up_and_lie_in_its_code() {
        let view = view("gemv_before.ncu-repz", 0).expect("samples were collected");
        // What the report says of the whole kernel.
        assert_eq!((view.totals.samples, view.totals.executed), (28_871, Some(8_592_864)));
        let of = |reason: &str| view.totals.stalls.iter().find(|stall| stall.reason == reason).map(|stall| stall.samples);
        assert_eq!((of("long_scoreboard"), of("selected"), of("no_instruction")), (Some(26_165), Some(909), Some(37)));
        assert_eq!(view.totals.stalls.iter().map(|stall| stall.samples).sum::<u64>(), 28_871);
        let hottest = view.hottest(1)[0];
        assert!(hottest.producer.is_some() && hottest.line.is_some(), "{hottest:?}");
        // Most samples fall on a header, whose text is not in the report; the kernel's own file is.
        assert!(view.lines.iter().any(|line| line.text.as_deref().is_some_and(|text| text.contains("gemv_row_per_thread"))));
    }

    #[test]
    fn a_report_without_samples_has_no_view() {
        assert_eq!(view("kern_basic.ncu-rep", 0), None);
    }
}
