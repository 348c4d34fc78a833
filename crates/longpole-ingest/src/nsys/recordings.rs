//! Which process is which recording, and correlation numbers that tell processes apart.
//!
//! An export may hold many processes, and each counts its correlation numbers from one. Where processes work mainly on GPUs of their own (one
//! for each rank), each is a recording of its own, as a file for each would be. Where they share GPUs, they are processes of one
//! recording. Either way a number is joined with its process: the first process keeps its numbers, others have theirs marked.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Problems;

use super::database::Database;
use super::scan::{Scan, Values};
use super::tables;
use super::target::Target;

/// More processes than this are no ranks; real machines have 16 GPUs.
const MAX_RANKS: usize = 1024;
/// Bits of a global id that number the thread.
const THREAD_BITS: u32 = 24;
const THREAD_MASK: i64 = (1 << THREAD_BITS) - 1;
/// Correlation numbers have 32 bits; the process is marked above them.
const PROCESS_SHIFT: u32 = 48;

/// The process of a thread, or of a process's own global id.
pub(super) fn process_of(global: i64) -> i64 {
    global & !THREAD_MASK
}

/// Process number and thread number of a global id.
pub(super) fn split(global: i64) -> (i64, i64) {
    (global >> THREAD_BITS & THREAD_MASK, global & THREAD_MASK)
}

/// Processes with device work that are recordings of their own, in order of their main GPU; empty when all are one recording.
pub(super) fn separate(database: &Database, target: &Target, threads: usize, problems: &mut Problems) -> Vec<i64> {
    if contexts(database, problems).is_some_and(|processes| processes < 2) {
        return Vec::new();
    }
    let mut work: HashMap<(i64, i64), u64, FixedState> = HashMap::default();
    for name in tables::DEVICE_WORK {
        let Some(table) = database.table(name).filter(|table| table.has("globalPid")) else { continue };
        let make = |counts: &mut Counts, values: &mut Values<'_, '_>| {
            if let Some(process) = values.int(0) {
                counts.add((process_of(process), values.int(1).unwrap_or(0)));
            }
        };
        // What is wrong with the rows is counted when they are read.
        let mut ignored = Problems::default();
        Scan::new(database, table, &["globalPid", "deviceId"], None).run(threads, &mut ignored, make, |counts| {
            for (key, count) in counts.0.drain(..) {
                *work.entry(key).or_default() += count;
            }
        });
    }
    with_own_gpus(&work, |process, device| target.gpu_of(split(process).0, device).unwrap_or(device))
}

/// The same of work that is counted by process and device; `gpu_of` tells which GPU a process calls a device.
pub(super) fn with_own_gpus(work: &HashMap<(i64, i64), u64, FixedState>, gpu_of: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    let mut main: HashMap<i64, (u64, i64), FixedState> = HashMap::default();
    for (&(process, device), &count) in work {
        let gpu = gpu_of(process, device);
        let known = main.entry(process).or_insert((count, gpu));
        if (count, std::cmp::Reverse(gpu)) > (known.0, std::cmp::Reverse(known.1)) {
            *known = (count, gpu);
        }
    }
    let mut processes: Vec<(i64, i64)> = main.into_iter().map(|(process, (_, gpu))| (gpu, process)).collect();
    processes.sort_unstable();
    if processes.windows(2).any(|pair| pair[0].0 == pair[1].0) || !(2..=MAX_RANKS).contains(&processes.len()) {
        return Vec::new();
    }
    processes.into_iter().map(|(_, process)| process).collect()
}

/// Device work by process and device: few of them, and neighbouring rows mostly alike.
#[derive(Default)]
struct Counts(Vec<((i64, i64), u64)>);

impl Counts {
    fn add(&mut self, key: (i64, i64)) {
        match self.0.last_mut() {
            Some((last, count)) if *last == key => *count += 1,
            _ => self.0.push((key, 1)),
        }
    }
}

/// How many processes have CUDA contexts, if the export says.
fn contexts(database: &Database, problems: &mut Problems) -> Option<usize> {
    let table = tables::CONTEXTS.iter().find_map(|name| database.table(name)).filter(|table| table.has("processId"))?;
    let mut found = Vec::new();
    let make = |rows: &mut Vec<i64>, values: &mut Values<'_, '_>| rows.extend(values.int(0));
    Scan::new(database, table, &["processId"], None).run(1, problems, make, |rows| {
        found.append(rows);
        found.sort_unstable();
        found.dedup();
    });
    (!found.is_empty()).then_some(found.len())
}

/// Processes as they are met.
#[derive(Debug)]
pub(super) struct Processes {
    /// The recording of processes that have one of their own.
    own: HashMap<i64, u32, FixedState>,
    first: u32,
    /// Marks of processes; absent when the file does not say whose an event is.
    marks: Option<HashMap<i64, u64, FixedState>>,
}

impl Processes {
    /// `own` are processes with recordings of their own, `first` is the recording of all others.
    pub(super) fn new(own: HashMap<i64, u32, FixedState>, first: u32, says_whose: bool) -> Self {
        Self { own, first, marks: says_whose.then(HashMap::default) }
    }

    /// The recording of a process.
    pub(super) fn recording(&self, process: Option<i64>) -> u32 {
        process.and_then(|process| self.own.get(&process).copied()).unwrap_or(self.first)
    }

    /// What a process's correlation numbers are marked with.
    pub(super) fn mark(&mut self, process: i64) -> u64 {
        let Some(marks) = &mut self.marks else { return 0 };
        let next = marks.len() as u64;
        // Beyond 65,536 processes, marks are used again.
        *marks.entry(process).or_insert((next & 0xFFFF) << PROCESS_SHIFT)
    }
}
