//! Building the view from its inputs.

use super::lines::{line_rows, share};
use super::{FileLine, InstructionRow, Note, Producer, SampleRow, SourceInput, SourceView, StallCount, Totals};
use crate::source::cubin::{Cubin, Function, INSTRUCTION_BYTES};
use crate::source::dataflow::{Dependency, Program};
use crate::source::lines::{LineTable, Location};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Instructions whose wait is explained. A real kernel has hundreds; a hostile one could ask for millions of walks.
const MAX_PRODUCERS: usize = 8192;

/// Builds the view. It never fails: what cannot be found out is `None`, and a note says why.
pub fn source_view(input: &SourceInput<'_>) -> SourceView {
    let mut notes = Vec::new();
    let code = Code::of(input, &mut notes);
    let mut instructions = recorded(input, code.as_ref().map(|code| &code.function), &mut notes);
    if let Some(code) = &code {
        // Every instruction is listed, whether anything was recorded there or not.
        for index in 0..code.bytes.len() as u64 / INSTRUCTION_BYTES {
            instructions.entry(index * INSTRUCTION_BYTES).or_default();
        }
    }

    let mut view = SourceView::default();
    let mut totals = Sums::default();
    for (address, row) in instructions {
        totals.add(&row);
        view.instructions.push(instruction_row(address, row, code.as_ref(), input));
    }
    if let Some(code) = &code {
        name_producers(&mut view.instructions, code, input);
    }
    view.totals = Totals {
        samples: totals.samples,
        not_issued: totals.not_issued,
        stalls: totals.sorted_stalls(),
        executed: totals.executed,
        threads_executed: totals.threads_executed,
    };
    for row in &mut view.instructions {
        row.share = share(row.samples, view.totals.samples);
    }
    view.lines = line_rows(&view.instructions, view.totals.samples, input.files, |row| (row.file.as_deref(), row.line));
    view.kernel_lines = line_rows(&view.instructions, view.totals.samples, input.files, |row| match &row.called_from {
        Some(call) => (Some(&call.file), Some(call.line)),
        None => (row.file.as_deref(), row.line),
    });

    if code.as_ref().is_some_and(|code| code.program.is_some()) {
        let unknown = view.instructions.iter().filter(|row| row.mnemonic.is_none()).count();
        if unknown > 0 {
            notes.push(Note::UnknownOpcodes { instructions: unknown });
        }
        if view.instructions.iter().all(|row| row.sass.is_none()) {
            notes.push(Note::NoDisassembly);
        }
    }
    if view.lines.iter().any(|line| line.line.is_some()) && view.lines.iter().all(|line| line.text.is_none()) {
        notes.push(Note::NoSourceText);
    }
    view.notes = notes;
    view
}

/// What the cubin says about the kernel.
struct Code<'a> {
    function: Function<'a>,
    bytes: &'a [u8],
    lines: Option<LineTable>,
    /// `None` where instructions cannot be decoded.
    program: Option<Program>,
}

impl<'a> Code<'a> {
    fn of(input: &SourceInput<'a>, notes: &mut Vec<Note>) -> Option<Self> {
        let Some(bytes) = input.cubin.filter(|bytes| !bytes.is_empty()) else {
            notes.push(Note::NoCubin);
            return None;
        };
        let cubin = match Cubin::parse(bytes) {
            Ok(cubin) => cubin,
            Err(error) => {
                notes.push(Note::BrokenCubin(error.to_string()));
                return None;
            }
        };
        let found = cubin.function(input.function).and_then(|function| cubin.code(&function).map(|code| (function, code)));
        let Some((function, code)) = found else {
            notes.push(Note::FunctionNotInCubin);
            return None;
        };
        let lines = LineTable::read(&cubin, &function);
        if lines.is_none() {
            notes.push(Note::NoLineInfo);
        }
        let program = match input.sm.or_else(|| cubin.sm_version()) {
            Some(sm) if sm.has_wide_instructions() => Some(Program::new(code, sm)),
            Some(sm) => {
                notes.push(Note::UndecodedChip(sm));
                None
            }
            None => {
                notes.push(Note::UnknownChip);
                None
            }
        };
        // Where instructions have another length, only recorded addresses are listed.
        let bytes = if program.is_some() { code } else { &[] };
        Some(Self { function, bytes, lines, program })
    }

    fn mnemonic(&self, address: u64) -> Option<&'static str> {
        let index = usize::try_from(address / INSTRUCTION_BYTES).ok()?;
        self.program.as_ref()?.instructions().get(index)?.mnemonic()
    }

    fn location(&self, address: u64) -> Option<Location<'_>> {
        self.lines.as_ref()?.location(address)
    }

    fn sass(&self, address: u64, input: &SourceInput<'_>) -> Option<String> {
        let offset = self.function.section_offset.checked_add(address)?;
        input.disassembly?.sass(input.function, offset).map(str::to_owned)
    }
}

/// Rows by relative address, those of one address added up.
fn recorded(input: &SourceInput<'_>, function: Option<&Function<'_>>, notes: &mut Vec<Note>) -> BTreeMap<u64, SampleRow> {
    let size = function.map(|function| function.size_bytes);
    let base = input.base_address.or_else(|| function?.load_address).unwrap_or_else(|| {
        if !input.rows.is_empty() {
            notes.push(Note::BaseAddressGuessed);
        }
        input.rows.iter().map(|row| row.address).min().unwrap_or(0)
    });
    let mut rows: BTreeMap<u64, SampleRow> = BTreeMap::new();
    let (mut addresses, mut samples) = (0, 0_u64);
    for row in input.rows {
        let relative = row.address.checked_sub(base).filter(|&relative| size.is_none_or(|size| relative < size));
        let Some(relative) = relative else {
            addresses += 1;
            samples = samples.saturating_add(row.samples);
            continue;
        };
        let mut sums = Sums::default();
        let entry = rows.entry(relative).or_default();
        sums.add(entry);
        sums.add(row);
        *entry = SampleRow {
            address: relative,
            samples: sums.samples,
            not_issued: sums.not_issued,
            stalls: sums.sorted_stalls(),
            executed: sums.executed,
            threads_executed: sums.threads_executed,
        };
    }
    if addresses > 0 {
        notes.push(Note::OutsideFunction { addresses, samples });
    }
    rows
}

fn instruction_row(address: u64, row: SampleRow, code: Option<&Code<'_>>, input: &SourceInput<'_>) -> InstructionRow {
    let sass = code.and_then(|code| code.sass(address, input));
    let location = code.and_then(|code| code.location(address));
    InstructionRow {
        address,
        mnemonic: mnemonic(code, address, sass.as_deref()),
        sass,
        file: location.map(|location| location.written.file.to_owned()),
        line: location.map(|location| location.written.line),
        called_from: location
            .and_then(|location| location.called_from)
            .map(|call| FileLine { file: call.file.to_owned(), line: call.line }),
        samples: row.samples,
        share: None,
        not_issued: row.not_issued,
        producer: None,
        stalls: row.stalls,
        executed: row.executed,
        threads_executed: row.threads_executed,
    }
}

/// The decoded mnemonic, else the one in the text.
fn mnemonic(code: Option<&Code<'_>>, address: u64, sass: Option<&str>) -> Option<String> {
    let decoded = code.and_then(|code| code.mnemonic(address));
    let written = || sass?.split_whitespace().find(|word| !word.starts_with('@'))?.split('.').next();
    decoded.or_else(written).map(str::to_owned)
}

/// The scoreboard stalls of a row: long (memory behind L1) and short.
fn scoreboard_stalls(stalls: &[StallCount]) -> (u64, u64) {
    let of = |long: &str, short: &str| {
        stalls.iter().filter(|stall| stall.reason == long || stall.reason == short).map(|stall| stall.samples).sum()
    };
    (of("long_scoreboard", "long_sb"), of("short_scoreboard", "short_sb"))
}

/// Names what the instructions with the most scoreboard stalls wait for.
fn name_producers(rows: &mut [InstructionRow], code: &Code<'_>, input: &SourceInput<'_>) {
    let mut stalled: Vec<_> = rows
        .iter_mut()
        .filter_map(|row| {
            let (long, short) = scoreboard_stalls(&row.stalls);
            (long > 0 || short > 0).then_some((long, short, row))
        })
        .collect();
    stalled.sort_by_key(|(long, short, row)| (std::cmp::Reverse(long.saturating_add(*short)), row.address));
    for (long, short, row) in stalled.into_iter().take(MAX_PRODUCERS) {
        row.producer = producer(row.address, long >= short, code, input);
    }
}

/// What an instruction's scoreboard stalls, mostly long or mostly short ones, are for.
fn producer(address: u64, mostly_long: bool, code: &Code<'_>, input: &SourceInput<'_>) -> Option<Producer> {
    let index = usize::try_from(address / INSTRUCTION_BYTES).ok()?;
    let dependencies = code.program.as_ref()?.dependencies(index);
    // The kind of stall tells apart what the registers leave open.
    let fits = |dependency: &&Dependency| dependency.unit.is_long_scoreboard() == mostly_long;
    let chosen = dependencies.iter().find(fits)?;
    let address = chosen.index as u64 * INSTRUCTION_BYTES;
    let sass = code.sass(address, input);
    let location = code.location(address);
    Some(Producer {
        address,
        mnemonic: mnemonic(Some(code), address, sass.as_deref()),
        sass,
        unit: chosen.unit,
        relation: chosen.relation,
        file: location.map(|location| location.written.file.to_owned()),
        line: location.map(|location| location.written.line),
    })
}

/// Samples and counts added up.
#[derive(Default)]
pub(super) struct Sums<'a> {
    pub(super) samples: u64,
    pub(super) not_issued: Option<u64>,
    pub(super) stalls: BTreeMap<Cow<'a, str>, u64>,
    pub(super) executed: Option<u64>,
    pub(super) threads_executed: Option<u64>,
}

impl Sums<'_> {
    fn add(&mut self, row: &SampleRow) {
        self.add_parts(row.samples, row.not_issued, &row.stalls, row.executed, row.threads_executed);
    }

    pub(super) fn add_parts(
        &mut self,
        samples: u64,
        not_issued: Option<u64>,
        stalls: &[StallCount],
        executed: Option<u64>,
        threads: Option<u64>,
    ) {
        let plus = |sum: Option<u64>, more: Option<u64>| more.map_or(sum, |more| Some(sum.unwrap_or(0).saturating_add(more)));
        self.samples = self.samples.saturating_add(samples);
        self.not_issued = plus(self.not_issued, not_issued);
        self.executed = plus(self.executed, executed);
        self.threads_executed = plus(self.threads_executed, threads);
        for stall in stalls {
            let sum = self.stalls.entry(Cow::Owned(stall.reason.clone())).or_default();
            *sum = sum.saturating_add(stall.samples);
        }
    }

    /// Reasons with samples, most first.
    pub(super) fn sorted_stalls(&self) -> Vec<StallCount> {
        let mut stalls: Vec<_> = self
            .stalls
            .iter()
            .filter(|&(_, &samples)| samples > 0)
            .map(|(reason, &samples)| StallCount { reason: reason.to_string(), samples })
            .collect();
        // The map is ordered by name and the sort stable.
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.samples));
        stalls
    }
}
