//! Which instruction a stalled instruction waits for.
//!
//! A profiler charges a stall to the instruction that cannot issue: the one that uses a value, not the one that loads it. The way back
//! follows what the compiler wrote down. An operation of variable latency sets one of six scoreboards until its result is there; its
//! users carry a mask of the scoreboards they wait for. So the instruction waited for is the last writer of a register the stalled one
//! reads, provided that writer set a scoreboard in the mask and nothing in between has already waited for it.
//!
//! The walk goes backward over fall-through and direct branches, so a loop body is entered from its end too. It is bounded. Where no
//! register explains a wait, the instruction that set the awaited scoreboard last is named, and the relation says so; where there is
//! none, nothing is. Not followed: indirect jumps, calls, values that travel through operations whose registers are not known (`HGMMA`).

use super::cubin::SmVersion;
use super::sass::{Instruction, RegisterFile, RegisterRange, Registers, Unit, decode_all};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// Steps of one backward walk, repeated visits counted. The longest loop bodies seen have a few thousand instructions.
const STEPS_PER_REGISTER: usize = 8192;

/// Steps of all walks for one instruction.
const STEPS_PER_INSTRUCTION: usize = 65_536;

/// In what way one instruction waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// For the value it produces.
    Value,
    /// For it to have read a register that is to be overwritten.
    OperandsRead,
    /// For a group of asynchronous copies it belongs to.
    CopyGroup,
    /// For the scoreboard it sets, without a register that says why: jumps and barriers wait like this for what was begun before.
    Scoreboard,
}

/// An instruction that another one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// Position of the instruction waited for.
    pub index: usize,
    /// Way of waiting.
    pub relation: Relation,
    /// Where it runs.
    pub unit: Unit,
    /// Instructions between the two on the shortest way, counted backward along the control flow.
    pub distance: usize,
}

/// The decoded instructions of a function with the ways between them.
#[derive(Debug, Clone)]
pub struct Program {
    instructions: Vec<Instruction>,
    registers: Vec<Option<Registers>>,
    /// For each instruction those that jump to it. Falling through is not listed.
    jumps_here: Vec<Vec<usize>>,
}

impl Program {
    /// Decodes a function's code. Empty for chips before compute capability 7.0.
    pub fn new(code: &[u8], sm: SmVersion) -> Self {
        let instructions = decode_all(code, sm);
        let registers = instructions.iter().map(Instruction::registers).collect();
        let mut jumps_here = vec![Vec::new(); instructions.len()];
        for (index, instruction) in instructions.iter().enumerate() {
            let target = instruction.branch_distance().filter(|distance| distance % 16 == 0).and_then(|distance| {
                let steps = isize::try_from(distance / 16).ok()?;
                (index + 1).checked_add_signed(steps)
            });
            if let Some(sources) = target.and_then(|target| jumps_here.get_mut(target)) {
                sources.push(index);
            }
        }
        Self { instructions, registers, jumps_here }
    }

    /// The instructions, 16 bytes apart.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// What an instruction waits for, nearest first. Empty where that is not certain.
    pub fn dependencies(&self, index: usize) -> Vec<Dependency> {
        let Some(instruction) = self.instructions.get(index) else { return Vec::new() };
        if let Some((scoreboard, left)) = instruction.waits_for_scoreboard_count() {
            return self.copy_group(index, scoreboard, left);
        }
        let wait = instruction.control().wait_mask;
        let mut found = Vec::new();
        if wait == 0 {
            return found;
        }
        let mut budget = STEPS_PER_INSTRUCTION;
        if let Some(registers) = self.registers.get(index).and_then(Option::as_ref) {
            let each = |ranges: &[RegisterRange]| ranges.iter().flat_map(RegisterRange::iter).collect::<BTreeSet<_>>();
            for register in each(&registers.reads) {
                self.walk(index, Search::Value(register), wait, &mut budget, &mut found);
            }
            for register in each(&registers.writes) {
                self.walk(index, Search::OperandsRead(register), wait, &mut budget, &mut found);
            }
        }
        if found.is_empty() {
            self.walk(index, Search::Scoreboard, wait, &mut budget, &mut found);
        }
        found.sort_by_key(|dependency| (dependency.relation, dependency.distance, dependency.index));
        found.dedup_by_key(|dependency| (dependency.relation, dependency.index));
        found
    }

    /// Goes back from an instruction to those that set an awaited scoreboard, on behalf of one register if one is given.
    fn walk(&self, from: usize, search: Search, wait: u8, budget: &mut usize, found: &mut Vec<Dependency>) {
        // The scoreboards that something on the way has already waited for are part of the state: what set them earlier is done.
        let mut queue = VecDeque::from([(from, 0_u8, 0_usize)]);
        let mut visited = HashSet::new();
        let mut steps = STEPS_PER_REGISTER.min(*budget);
        while let Some((at, drained, distance)) = queue.pop_front() {
            for index in self.predecessors(at) {
                if steps == 0 {
                    return;
                }
                steps -= 1;
                *budget -= 1;
                if !visited.insert((index, drained)) {
                    continue;
                }
                let Some(instruction) = self.instructions.get(index) else { continue };
                let control = instruction.control();
                let guard = instruction.guard();
                let registers = self.registers.get(index).and_then(Option::as_ref).filter(|_| !guard.is_never());
                let (touches, scoreboards) = match search {
                    Search::Value(register) => {
                        (registers.is_some_and(|registers| contains(&registers.writes, register)), [control.write_scoreboard, None])
                    }
                    Search::OperandsRead(register) => {
                        (registers.is_some_and(|registers| contains(&registers.reads, register)), [control.read_scoreboard, None])
                    }
                    Search::Scoreboard => (true, [control.write_scoreboard, control.read_scoreboard]),
                };
                let awaited = scoreboards.iter().flatten().any(|&number| (wait & !drained) >> number & 1 == 1);
                if touches
                    && awaited
                    && let Some(unit) = instruction.unit()
                {
                    found.push(Dependency { index, relation: search.relation(), unit, distance });
                }
                // A write under a predicate may leave the older value in place. Of scoreboards alone, the latest to be set is enough.
                let ends = match search {
                    Search::Value(_) => touches && guard.is_always(),
                    Search::OperandsRead(_) => false,
                    Search::Scoreboard => awaited,
                };
                let drained = drained | (control.wait_mask & wait);
                if !ends && drained != wait {
                    queue.push_back((index, drained, distance + 1));
                }
            }
        }
    }

    /// The copies behind `DEPBAR.LE SBn, left`: every `LDGDEPBAR` closes a group of the copies issued before it, and groups end in
    /// order, so the one waited for is the latest but `left`.
    fn copy_group(&self, from: usize, scoreboard: u8, left: u8) -> Vec<Dependency> {
        let closes_group = |instruction: &Instruction| {
            instruction.mnemonic() == Some("LDGDEPBAR") && instruction.control().write_scoreboard == Some(scoreboard)
        };
        let (mut at, mut distance) = (from, 0);
        for _ in 0..=left {
            let Some((group, between)) = self.nearest(at, closes_group) else { return Vec::new() };
            at = group;
            distance += between + 1;
        }
        let Some((index, between)) = self.nearest(at, |instruction| instruction.mnemonic() == Some("LDGSTS")) else { return Vec::new() };
        vec![Dependency { index, relation: Relation::CopyGroup, unit: Unit::AsyncCopy, distance: distance + between }]
    }

    /// The nearest instruction backward that fits, with the number of instructions between.
    fn nearest(&self, from: usize, fits: impl Fn(&Instruction) -> bool) -> Option<(usize, usize)> {
        let mut queue = VecDeque::from([(from, 0_usize)]);
        let mut visited = HashSet::new();
        let mut steps = STEPS_PER_REGISTER;
        while let Some((at, distance)) = queue.pop_front() {
            for index in self.predecessors(at) {
                steps = steps.checked_sub(1)?;
                if !visited.insert(index) {
                    continue;
                }
                if self.instructions.get(index).is_some_and(&fits) {
                    return Some((index, distance));
                }
                queue.push_back((index, distance + 1));
            }
        }
        None
    }

    /// The instructions after which this one may run.
    fn predecessors(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let before = index.checked_sub(1).filter(|&before| !self.instructions.get(before).is_some_and(Instruction::ends_block));
        before.into_iter().chain(self.jumps_here.get(index).into_iter().flatten().copied())
    }
}

/// What a backward walk looks for.
#[derive(Debug, Clone, Copy)]
enum Search {
    /// The last writers of a register.
    Value((RegisterFile, u8)),
    /// Readers of a register that have not read it yet.
    OperandsRead((RegisterFile, u8)),
    /// Whatever set the scoreboard last.
    Scoreboard,
}

impl Search {
    const fn relation(self) -> Relation {
        match self {
            Self::Value(_) => Relation::Value,
            Self::OperandsRead(_) => Relation::OperandsRead,
            Self::Scoreboard => Relation::Scoreboard,
        }
    }
}

fn contains(ranges: &[RegisterRange], (file, number): (RegisterFile, u8)) -> bool {
    ranges.iter().any(|range| range.contains(file, number))
}
