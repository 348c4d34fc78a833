//! Floors and ceilings of real steps, against figures worked out by hand.
//!
//! `qwen3_eager` is Qwen3-0.6B in bf16 on an H200: hidden size 1,024, intermediate size 3,072, 28 layers, vocabulary 151,936. The H200's
//! memory moves 4.8 TB/s by its data sheet.

use longpole_analysis::{
    CeilingKind, CeilingSubject, GroupCeilings, Part, Peaks, Scope, ScopeWork, StepGroup, StepOptions, StepTable, TraceIndex, borrow_roles,
    floor_donors, role_donors, step_ceilings, step_table,
};
use longpole_trace::{DeviceProperties, Ns, Trace};

use crate::slow_reader;
use crate::torch_table::corpus;

const BYTES_PER_S: i64 = 4_800_000_000_000;
const LAYERS: i64 = 28;

fn read(name: &str) -> Trace {
    slow_reader::read(&corpus().join(format!("{name}.json.gz")))
}

fn h200() -> Peaks {
    // The reader of these tests reads no devices.
    let peaks = Peaks::of_device(&DeviceProperties { name: Some("NVIDIA H200".to_owned()), ..DeviceProperties::default() }).unwrap();
    assert_eq!(peaks.memory_bytes_per_s as i64, BYTES_PER_S);
    peaks
}

fn group<'a>(table: &'a StepTable, ceilings: &'a [GroupCeilings], part_of_name: &str) -> (&'a StepGroup, &'a GroupCeilings) {
    let at = table.groups.iter().position(|group| group.name.contains(part_of_name)).unwrap();
    (&table.groups[at], &ceilings[at])
}

/// The floor and the ceiling of a role, a step.
fn of_role(group: &StepGroup, ceilings: &GroupCeilings, role: &str) -> Option<(Ns, Ns)> {
    let rows = group.rows.iter().zip(&ceilings.rows).filter(|(row, _)| row.role == role);
    rows.map(|(_, ceiling)| ceiling.floor_ns.zip(ceiling.ceiling_ns)).reduce(|sum, row| {
        let ((floor, win), (more_floor, more_win)) = (sum?, row?);
        Some((floor + more_floor, win + more_win))
    })?
}

/// A weight of bf16, a row of input, a row of output.
fn linear_ns(inputs: i64, outputs: i64) -> f64 {
    (2 * (inputs * outputs + inputs + outputs)) as f64 / BYTES_PER_S as f64 * 1e9
}

fn is_near(found: Ns, want: f64) -> bool {
    // Each call's floor is whole nanoseconds.
    (found.get() as f64 - want).abs() <= LAYERS as f64
}

#[test]
fn linear_layers_of_a_decode_step_by_hand() {
    let trace = read("qwen3_eager");
    let index = TraceIndex::new(&trace);
    let scope = Scope::whole();
    let table = step_table(&index, &scope, &StepOptions::default());
    let peaks = h200();
    let ceilings = step_ceilings(&ScopeWork::find(&index, &scope, Some(&peaks)), &table, &[]);
    let (decode, found) = group(&table, &ceilings, "decode");
    // Queries are 16 heads of 128, keys and values 8.
    let linear = [
        ("q_proj", 1_024, 2_048),
        ("k_proj", 1_024, 1_024),
        ("o_proj", 2_048, 1_024),
        ("up_proj", 1_024, 3_072),
        ("down_proj", 3_072, 1_024),
    ];
    for (role, inputs, outputs) in linear {
        let (floor, win) = of_role(decode, found, role).unwrap();
        assert!(is_near(floor, LAYERS as f64 * linear_ns(inputs, outputs)), "{role}: {floor}");
        let taken: Ns = decode.rows.iter().filter(|row| row.role == role).map(|row| row.ns_per_step).sum();
        // Of several kernels the medians of their shares are added.
        assert!(win <= taken && (win - (taken - floor)).get().abs() <= LAYERS, "{role}: {win} of {taken}, floor {floor}");
    }
    let (floor, _) = of_role(decode, found, "lm_head").unwrap();
    assert!(is_near(floor, linear_ns(1_024, 151_936)), "{floor}");

    // The host holds the clock: replaying wins far more than any kernel.
    let best = &found.ceilings[found.best.unwrap()];
    assert_eq!(best.kind, CeilingKind::GraphReplay);
    let down = found.ceilings.iter().find(|row| matches!(&row.subject, CeilingSubject::Role { role, .. } if role == "down_proj")).unwrap();
    assert_eq!(down.kind, CeilingKind::AtMemoryFloor);
    assert!(found.ceilings.is_sorted_by_key(|row| std::cmp::Reverse(row.per_step_ns)));
    // No row wins more than its group has.
    let spans: Ns = decode.steps.iter().map(longpole_analysis::Step::span_ns).sum();
    assert!(found.ceilings.iter().all(|row| row.ceiling_ns > Ns::ZERO && row.ceiling_ns <= spans));
    let sum: Ns = found.rows.iter().filter_map(|row| row.ceiling_ns).sum();
    assert!(sum <= decode.rows.iter().map(|row| row.ns_per_step).sum());
}

#[test]
fn without_peaks_no_floor_is_known() {
    let trace = read("qwen3_eager");
    let index = TraceIndex::new(&trace);
    let table = step_table(&index, &Scope::whole(), &StepOptions::default());
    let ceilings = step_ceilings(&ScopeWork::find(&index, &Scope::whole(), None), &table, &[]);
    let rows = ceilings.iter().flat_map(|of_group| &of_group.rows);
    assert!(rows.clone().count() > 0 && rows.clone().all(|row| row.floor_ns.is_none() && row.ceiling_ns.is_none()));
    let kinds = || ceilings.iter().flat_map(|of_group| &of_group.ceilings).map(|row| row.kind);
    assert!(!kinds().any(|kind| matches!(kind, CeilingKind::AtMemoryFloor | CeilingKind::AtComputeFloor)));
    assert!(kinds().any(|kind| kind == CeilingKind::WorkFree));
}

#[test]
fn a_replayed_step_takes_the_floors_of_an_eager_one() {
    let (graph, eager) = (read("qwen3_graph"), read("qwen3_eager"));
    let (index, donor_index) = (TraceIndex::new(&graph), TraceIndex::new(&eager));
    let scope = Scope::whole();
    let peaks = h200();
    let mut table = step_table(&index, &scope, &StepOptions { filter: Some(&|name| name == "replay_step"), ..StepOptions::default() });
    let donors = step_table(&donor_index, &scope, &StepOptions::default());
    let alone = step_ceilings(&ScopeWork::find(&index, &scope, Some(&peaks)), &table, &[]);
    let (replay, found) = group(&table, &alone, "replay_step");
    assert_eq!(of_role(replay, found, "down_proj"), None);
    for group in &mut table.groups {
        borrow_roles(&graph, group, &role_donors(&eager, &donors));
    }
    let lent = floor_donors(&donor_index, &scope, &donors, &peaks);
    let ceilings = step_ceilings(&ScopeWork::find(&index, &scope, Some(&peaks)), &table, &lent);
    let (replay, found) = group(&table, &ceilings, "replay_step");
    let (floor, win) = of_role(replay, found, "down_proj").unwrap();
    assert!(is_near(floor, LAYERS as f64 * linear_ns(3_072, 1_024)), "{floor}");
    assert!(win > floor);
    let down = found.ceilings.iter().find(|row| matches!(&row.subject, CeilingSubject::Role { role, .. } if role == "down_proj")).unwrap();
    assert!(matches!(&down.subject, CeilingSubject::Role { part: Part::Layer(0), rows, .. } if rows.len() == 2));
    assert!(down.basis.contains("by the shapes of `decode_step`"), "{}", down.basis);
    // What is replayed already is not to be replayed.
    assert!(!found.ceilings.iter().any(|row| row.kind == CeilingKind::GraphReplay));
}
