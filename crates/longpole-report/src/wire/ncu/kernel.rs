//! One kernel in full.

use longpole_analysis::Family;
use longpole_ncu::source::{InstructionRow, LineRow, StallCount};
use longpole_ncu::summary::{Missing, OccupancyLimit, Stall, Suggestion, Symptom};
use longpole_ncu::{Scope, Value};
use serde::{Serialize, Serializer};

use crate::ncu::{NcuKernel, RawMetric, top_stall};

/// Numbers that are none are null: JSON has no way to write them.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

#[derive(Serialize)]
pub(super) struct Kernel<'a> {
    id: usize,
    kind: &'static str,
    name: &'a str,
    short_name: &'a str,
    function: Option<&'a str>,
    family: Option<&'static str>,
    process: Option<&'a str>,
    nvtx: Vec<&'a str>,
    grid: Option<[u64; 3]>,
    block: Option<[u64; 3]>,
    cluster_size: Option<u64>,
    registers_per_thread: Option<u64>,
    shared_bytes_per_block: Option<u64>,
    shared_static_bytes: Option<u64>,
    shared_dynamic_bytes: Option<u64>,
    shared_driver_bytes: Option<u64>,
    waves_per_sm: Option<f64>,
    sm_count: Option<u64>,
    duration_ns: Option<u64>,
    dram_read_bytes: Option<u64>,
    dram_write_bytes: Option<u64>,
    dram_bytes_per_s: Option<f64>,
    dram_peak_bytes_per_s: Option<f64>,
    dram_pct: Option<f64>,
    memory_pct: Option<f64>,
    sm_pct: Option<f64>,
    l1_pct: Option<f64>,
    l2_pct: Option<f64>,
    l1_hit_pct: Option<f64>,
    l2_hit_pct: Option<f64>,
    ipc: Option<f64>,
    issue_active_fraction: Option<f64>,
    active_warps: Option<f64>,
    eligible_warps: Option<f64>,
    busiest_pipe: Option<&'static str>,
    busiest_pipe_pct: Option<f64>,
    tensor_pct: Option<f64>,
    sm_clock_hz: Option<f64>,
    dram_clock_hz: Option<f64>,
    theoretical_occupancy_pct: Option<f64>,
    achieved_occupancy_pct: Option<f64>,
    occupancy_limiters: &'a [&'static str],
    occupancy_limits: Vec<LimitOut>,
    verdict: Option<&'static str>,
    verdict_because: Option<&'a str>,
    warp_cycles_per_issue: Option<f64>,
    stalls: Vec<StallOut>,
    rules: Vec<RuleOut<'a>>,
    symptoms: Vec<SymptomOut<'a>>,
    missing: Vec<MissingOut>,
    samples: Option<u64>,
    hot: Vec<Instruction<'a>>,
    instructions: Option<Vec<Instruction<'a>>>,
    lines: Option<Vec<SourceLine<'a>>>,
    own_lines: Option<Vec<SourceLine<'a>>>,
    source_notes: &'a [String],
    metrics: Option<Vec<MetricOut<'a>>>,
}

#[derive(Serialize)]
struct LimitOut {
    resource: &'static str,
    blocks_per_sm: u64,
}

#[derive(Serialize)]
struct StallOut {
    reason: &'static str,
    cycles_per_issue: Option<f64>,
    share_fraction: f64,
    meaning: &'static str,
}

#[derive(Serialize)]
struct RuleOut<'a> {
    name: &'a str,
    title: &'a str,
    section: &'a str,
    text: &'a str,
    kind: &'static str,
    scope: Option<&'static str>,
    speedup_pct: Option<f64>,
    related: bool,
}

#[derive(Serialize)]
struct SymptomOut<'a> {
    code: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct MissingOut {
    what: &'static str,
    section: &'static str,
}

#[derive(Serialize)]
struct StallSamples<'a> {
    reason: &'a str,
    samples: u64,
}

#[derive(Serialize)]
struct Instruction<'a> {
    address: u64,
    sass: Option<&'a str>,
    mnemonic: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    called_from: Option<Place<'a>>,
    samples: u64,
    share_fraction: Option<f64>,
    top_stall: Option<&'a str>,
    stalls: Vec<StallSamples<'a>>,
    executed: Option<u64>,
    threads_executed: Option<u64>,
    waits_for: Option<ProducerOut<'a>>,
}

#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u32,
}

#[derive(Serialize)]
struct ProducerOut<'a> {
    address: u64,
    sass: Option<&'a str>,
    mnemonic: Option<&'a str>,
    what: &'static str,
    file: Option<&'a str>,
    line: Option<u32>,
}

#[derive(Serialize)]
struct SourceLine<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    text: Option<&'a str>,
    samples: u64,
    share_fraction: Option<f64>,
    stalls: Vec<StallSamples<'a>>,
    instructions: usize,
    executed: Option<u64>,
}

#[derive(Serialize)]
struct MetricOut<'a> {
    name: &'a str,
    unit: &'a str,
    value: Option<Raw<'a>>,
    instances: Vec<InstanceOut<'a>>,
}

#[derive(Serialize)]
struct InstanceOut<'a> {
    id: Option<Raw<'a>>,
    value: Option<Raw<'a>>,
}

/// A value as the report stores it: a text or a number, null for what is no number.
struct Raw<'a>(&'a Value);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Unsigned(number) => serializer.serialize_u64(*number),
            value => finite(value.number()).serialize(serializer),
        }
    }
}

fn stall(stall: &Stall) -> StallOut {
    StallOut {
        reason: stall.reason,
        cycles_per_issue: finite(stall.cycles_per_issue),
        share_fraction: stall.share_fraction,
        meaning: stall.meaning,
    }
}

fn rule(suggestion: &Suggestion) -> RuleOut<'_> {
    RuleOut {
        name: &suggestion.rule,
        title: &suggestion.title,
        section: &suggestion.section,
        text: &suggestion.text,
        kind: suggestion.kind.abbreviation(),
        scope: suggestion.scope.map(Scope::name),
        speedup_pct: finite(suggestion.speedup_pct),
        related: suggestion.is_related,
    }
}

fn samples(stalls: &[StallCount]) -> Vec<StallSamples<'_>> {
    stalls.iter().map(|stall| StallSamples { reason: &stall.reason, samples: stall.samples }).collect()
}

fn instruction(row: &InstructionRow) -> Instruction<'_> {
    Instruction {
        address: row.address,
        sass: row.sass.as_deref(),
        mnemonic: row.mnemonic.as_deref(),
        file: row.file.as_deref(),
        line: row.line,
        called_from: row.called_from.as_ref().map(|call| Place { file: &call.file, line: call.line }),
        samples: row.samples,
        share_fraction: row.share,
        top_stall: top_stall(row).map(|(reason, _)| reason),
        stalls: samples(&row.stalls),
        executed: row.executed,
        threads_executed: row.threads_executed,
        waits_for: row.producer.as_ref().map(|producer| ProducerOut {
            address: producer.address,
            sass: producer.sass.as_deref(),
            mnemonic: producer.mnemonic.as_deref(),
            what: producer.unit.describe(),
            file: producer.file.as_deref(),
            line: producer.line,
        }),
    }
}

fn line(row: &LineRow) -> SourceLine<'_> {
    SourceLine {
        file: row.file.as_deref(),
        line: row.line,
        text: row.text.as_deref(),
        samples: row.samples,
        share_fraction: row.share,
        stalls: samples(&row.stalls),
        instructions: row.instructions,
        executed: row.executed,
    }
}

fn metric(metric: &RawMetric) -> MetricOut<'_> {
    let instances = metric.instances.iter().map(|one| InstanceOut { id: one.id.as_ref().map(Raw), value: one.value.as_ref().map(Raw) });
    MetricOut { name: &metric.name, unit: &metric.unit, value: metric.value.as_ref().map(Raw), instances: instances.collect() }
}

pub(super) fn kernel(kernel: &NcuKernel, hot: Option<usize>, with_source: bool) -> Kernel<'_> {
    let summary = &kernel.summary;
    let (launch, speed) = (&summary.launch, &summary.speed);
    let source = kernel.source.as_ref();
    let shown = source.filter(|_| with_source);
    Kernel {
        id: summary.id,
        kind: summary.kind.name(),
        name: &summary.name,
        short_name: &kernel.short_name,
        function: summary.function.as_deref(),
        family: kernel.family.map(Family::name),
        process: kernel.process.as_deref(),
        nvtx: summary.nvtx.iter().map(|range| range.name.as_str()).collect(),
        grid: launch.grid,
        block: launch.block,
        cluster_size: launch.cluster_size,
        registers_per_thread: launch.registers_per_thread,
        shared_bytes_per_block: launch.shared_bytes_per_block,
        shared_static_bytes: launch.shared_static_bytes,
        shared_dynamic_bytes: launch.shared_dynamic_bytes,
        shared_driver_bytes: launch.shared_driver_bytes,
        waves_per_sm: finite(launch.waves_per_sm),
        sm_count: launch.sm_count,
        duration_ns: speed.duration_ns,
        dram_read_bytes: speed.dram_read_bytes,
        dram_write_bytes: speed.dram_write_bytes,
        dram_bytes_per_s: finite(speed.dram_bytes_per_s),
        dram_peak_bytes_per_s: finite(speed.dram_peak_bytes_per_s),
        dram_pct: finite(speed.dram_pct),
        memory_pct: finite(speed.memory_pct),
        sm_pct: finite(speed.sm_pct),
        l1_pct: finite(speed.l1_pct),
        l2_pct: finite(speed.l2_pct),
        l1_hit_pct: finite(speed.l1_hit_pct),
        l2_hit_pct: finite(speed.l2_hit_pct),
        ipc: finite(speed.ipc),
        issue_active_fraction: finite(speed.issue_active_fraction),
        active_warps: finite(speed.active_warps),
        eligible_warps: finite(speed.eligible_warps),
        busiest_pipe: speed.busiest_pipe.map(|(pipe, _)| pipe),
        busiest_pipe_pct: finite(speed.busiest_pipe.map(|(_, value)| value)),
        tensor_pct: finite(speed.tensor_pct),
        sm_clock_hz: finite(speed.sm_clock_hz),
        dram_clock_hz: finite(speed.dram_clock_hz),
        theoretical_occupancy_pct: finite(launch.theoretical_occupancy_pct),
        achieved_occupancy_pct: finite(launch.achieved_occupancy_pct),
        occupancy_limiters: &launch.limiters,
        occupancy_limits: launch
            .limits
            .iter()
            .map(|&OccupancyLimit { resource, blocks_per_sm }| LimitOut { resource, blocks_per_sm })
            .collect(),
        verdict: summary.verdict.as_ref().map(|verdict| verdict.kind.name()),
        verdict_because: summary.verdict.as_ref().map(|verdict| verdict.because.as_str()),
        warp_cycles_per_issue: finite(summary.warp_cycles_per_issue),
        stalls: summary.stalls.iter().map(stall).collect(),
        rules: summary.suggestions.iter().map(rule).collect(),
        symptoms: summary.symptoms.iter().map(|Symptom { code, text, .. }| SymptomOut { code, text }).collect(),
        missing: summary.missing.iter().map(|&Missing { what, section }| MissingOut { what, section }).collect(),
        samples: source.map(|source| source.totals.samples),
        hot: source.map_or_else(Vec::new, |source| source.hottest(hot.unwrap_or(usize::MAX)).into_iter().map(instruction).collect()),
        instructions: shown.map(|source| source.instructions.iter().map(instruction).collect()),
        lines: shown.map(|source| source.lines.iter().map(line).collect()),
        own_lines: shown.map(|source| source.kernel_lines.iter().map(line).collect()),
        source_notes: &kernel.source_notes,
        metrics: kernel.metrics.as_ref().map(|metrics| metrics.iter().map(metric).collect()),
    }
}
