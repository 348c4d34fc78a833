//! Steps: where the time of a whole prefill or decode step goes.
//!
//! Found by marker (ranges that repeat and hold the device work), else by graph launch, else from the order of kernels alone; then put
//! in groups of like steps, each cut into prologue, layers and epilogue, with a table by place. The stages, a file each:
//!
//! 1. `sequence`: the work of each device in program order.
//! 2. `repeats` (with `alphabet`, `runs`, `cyclic`, `variants` and `layers`): blocks of repeated layers and their significance; `fold` takes loops inside layers for one round.
//! 3. `markers` (with `names`, `surroundings` and `looks`): which ranges are steps; `find`, `classes` and `cut`: steps without ranges.
//! 4. `group` (with `align`): like steps together, warm-up and cut-off ones apart.
//! 5. `windows`: of each window's steps the second half, where only that is wanted.
//! 6. `canon`, `table`, `assemble`: the canonical sequence of a group, every activity in its place, figures.
//! 7. `roles`: what each place does in the model.
//! 8. `numbers`: the number of each step, which every command shows and `--step` takes.
//!
//! Nothing here knows a model or a framework, but for the names of a few numbers in markers.

mod align;
mod alphabet;
mod assemble;
mod canon;
mod classes;
mod cut;
mod cyclic;
mod find;
mod fold;
mod group;
mod layers;
mod looks;
mod markers;
mod names;
mod numbers;
mod repeats;
mod roles;
mod runs;
mod sequence;
mod surroundings;
mod table;
mod types;
mod variants;
mod windows;

use longpole_trace::Ns;

use crate::families::Family;
use crate::index::TraceIndex;
use crate::scope::Scope;
use fold::Folded;
use group::{Raw, clusters};
pub(crate) use numbers::{Counted, NumberedStep, OnThread, StepNumbers};
use repeats::Block;
pub use roles::{BorrowedRoles, RoleDonor, borrow_roles, role_donors};
use sequence::{Sequence, sequences};
pub(crate) use table::own_times_of;
pub use types::{
    Culprit, FoundBy, LayerKind, LayerStructure, LeftOut, Part, RoleSource, SlowStep, Step, StepGroup, StepLayer, StepNote, StepOptions,
    StepRow, StepTable, StripLayer, Why,
};
use windows::Halving;
pub use windows::window_starts;

/// The work of one device: in program order, with inner loops folded, and the blocks of layers in that.
struct Program {
    sequence: Sequence,
    folded: Folded,
    blocks: Vec<Block>,
}

/// What was found on a device: its steps, their names by class, and what is to be known of them.
struct Found {
    program: Program,
    raws: Vec<Raw>,
    names: Vec<String>,
    notes: Vec<StepNote>,
}

/// The steps of a scope before they are put in groups.
struct Findings {
    of_device: Vec<Found>,
    are_marked: bool,
    /// Activities without a recorded launch, where steps are marked.
    without_launch: u64,
}

impl Findings {
    fn of(index: &TraceIndex<'_>, scope: &Scope, options: &StepOptions<'_>) -> Self {
        let trace = index.trace();
        let mut is_attention = vec![None; trace.strings.len()];
        let programs: Vec<Program> = sequences(index, scope)
            .into_iter()
            .map(|sequence| {
                let mut attention = |symbol: u32| {
                    let name = trace.strings.get(longpole_trace::StrId(symbol));
                    *is_attention[symbol as usize]
                        .get_or_insert_with(|| Family::of(longpole_trace::ActivityKind::Kernel, name) == Family::Attention)
                };
                sequence.symbols.iter().for_each(|&symbol| {
                    attention(symbol);
                });
                let (folded, blocks) = fold::fold(&sequence.symbols, &|symbol| is_attention[symbol as usize] == Some(true));
                Program { sequence, folded, blocks }
            })
            .collect();
        let marked = markers::marked(index, scope, options, &programs);
        let mut without_launch = 0;
        let mut of_device = Vec::with_capacity(programs.len());
        for (number, program) in programs.into_iter().enumerate() {
            let (raws, names, notes) = match &marked {
                Some(marked) => {
                    without_launch += program.sequence.activities.iter().filter(|&&id| index.launch(id).is_none()).count() as u64;
                    marked_raws(index, &program, &marked.steps[number])
                }
                None => found_raws(index, &program),
            };
            of_device.push(Found { program, raws, names, notes });
        }
        Self { of_device, are_marked: marked.is_some(), without_launch }
    }
}

/// The steps of a scope, in groups of like steps. Their numbers are those of the whole trace.
pub fn step_table(index: &TraceIndex<'_>, scope: &Scope, options: &StepOptions<'_>) -> StepTable {
    let trace = index.trace();
    let mut table = StepTable { last_half: options.last_half, ..StepTable::default() };
    let found = Findings::of(index, scope, options);
    for Found { program, raws, names, notes } in &found.of_device {
        for note in notes {
            if !table.notes.contains(note) {
                table.notes.push(note.clone());
            }
        }
        let clusters = clusters(trace, program, raws);
        let window_of = windows::windows_of(index, program, raws, options.windows);
        let halving = Halving { last_half: options.last_half, window_of: &window_of };
        let groups = assemble::groups(trace, program, raws, &clusters, names, halving);
        let accepts = |name: &str| found.are_marked || options.filter.is_none_or(|accepts| accepts(name));
        table.groups.extend(groups.into_iter().filter(|group| accepts(&group.name)));
        let mut is_inside = vec![false; program.sequence.activities.len()];
        raws.iter().flat_map(|raw| &raw.positions).for_each(|&position| is_inside[position as usize] = true);
        for (activity, _) in program.sequence.activities.iter().zip(is_inside).filter(|(_, inside)| !inside) {
            table.activities_outside += 1;
            table.outside_ns += trace.activities.dur[activity.index()].max(Ns::ZERO);
        }
    }
    if found.without_launch > 0 {
        table.notes.push(StepNote::WithoutLaunch { activities: found.without_launch });
    }
    if table.groups.is_empty() {
        table.notes.push(StepNote::NoSteps);
    }
    let are_all = scope.is_all_recorded() && !options.ignore_ranges && options.filter.is_none();
    let numbers = index.step_numbers_of(|| {
        if are_all {
            StepNumbers::of_found(index, found.of_device.iter().map(|found| (&found.program, found.raws.as_slice())))
        } else {
            StepNumbers::of(index)
        }
    });
    numbers.apply(&mut table);
    roles::name_roles(index, &mut table);
    table
}

/// The groups of like steps that ranges mark one by one: the name of each, and its ranges. They have no numbers, so that what counts steps may ask.
pub(crate) fn marked_groups(index: &TraceIndex<'_>, scope: &Scope) -> Vec<(String, Vec<longpole_trace::RangeId>)> {
    let found = Findings::of(index, scope, &StepOptions::default());
    if !found.are_marked {
        return Vec::new();
    }
    let mut groups = Vec::new();
    for Found { program, raws, names, .. } in &found.of_device {
        for cluster in clusters(index.trace(), program, raws) {
            let mut ranges: Vec<longpole_trace::RangeId> = cluster.members.iter().filter_map(|&at| raws[at].range).collect();
            ranges.sort_unstable();
            ranges.dedup();
            let name = cluster.members.first().and_then(|&at| names.get(raws[at].class as usize));
            // A marker around several steps marks none of them.
            if let (true, Some(name)) = (ranges.len() == cluster.members.len(), name) {
                groups.push((name.clone(), ranges));
            }
        }
    }
    groups
}

/// Steps by marker. Where a marker holds several blocks of the same layers (a whole loop), these are its steps.
fn marked_raws(
    index: &TraceIndex<'_>,
    program: &Program,
    marked: &[(longpole_trace::RangeId, Vec<u32>)],
) -> (Vec<Raw>, Vec<String>, Vec<StepNote>) {
    let trace = index.trace();
    let raw_names: Vec<&str> = marked.iter().map(|(range, _)| trace.strings.get(trace.ranges.name[range.index()])).collect();
    let shown = names::shown_by_template(&raw_names);
    let mut markers: hashbrown::HashMap<&str, u32, foldhash::fast::FixedState> = hashbrown::HashMap::default();
    let of_marker: Vec<(longpole_trace::RangeId, u32)> = marked
        .iter()
        .zip(&shown)
        .map(|((range, _), name)| {
            let next = markers.len() as u32;
            (*range, *markers.entry(name).or_insert(next))
        })
        .collect();
    let full: Vec<String> = surroundings::prefixes(index, &of_marker)
        .into_iter()
        .zip(&shown)
        .map(|(prefix, name)| if prefix.is_empty() { name.clone() } else { format!("{prefix} > {name}") })
        .collect();
    let mut names: Vec<String> = Vec::new();
    let mut numbers: hashbrown::HashMap<&str, u32, foldhash::fast::FixedState> = hashbrown::HashMap::default();
    let mut raws = Vec::new();
    for ((range, positions), name) in marked.iter().zip(&full) {
        let class = *numbers.entry(name).or_insert_with(|| {
            names.push(name.clone());
            names.len() as u32 - 1
        });
        raws.push(Raw { class, by: FoundBy::Marker, range: Some(*range), positions: positions.clone(), layers: None });
    }
    let (raws, notes) = find::split_markers(trace, program, raws, &mut names);
    (raws, names, notes)
}

/// Steps by graph launch and kernel sequence.
fn found_raws(index: &TraceIndex<'_>, program: &Program) -> (Vec<Raw>, Vec<String>, Vec<StepNote>) {
    let (found, notes) = find::find(index, program);
    let kept = &program.folded.kept;
    let position = |at: usize| kept.get(at).map_or(program.sequence.activities.len() as u32, |&position| position);
    let raws = found.into_iter().map(|found| Raw {
        class: found.key,
        by: found.by,
        range: None,
        positions: (position(found.range.start)..position(found.range.end)).collect(),
        layers: found.layers,
    });
    (raws.collect(), Vec::new(), notes)
}
