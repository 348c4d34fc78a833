//! Against NVIDIA's own source page of two reports: SASS text, samples, stall reasons.

use super::report::{self, Page, Source};
use crate::source::sass::{Instruction, RegisterFile, decode_all};
use crate::source::{Cubin, SmVersion, SourceInput, SourceView, source_view};
use std::collections::{BTreeMap, BTreeSet};

const REPORTS: [&str; 2] = ["gemv_before", "gemv_after"];

/// Runs a check on every kernel that has both a source page and code.
fn for_each_kernel(test: &str, mut check: impl FnMut(&Source, &Page, &str, u64)) {
    if report::folder().is_none() {
        report::say(&format!("{test} skipped: there are no recorded reports here (LONGPOLE_SHARED names their folder)"));
        return;
    }
    let mut kernels = 0;
    for name in REPORTS {
        let sources = report::sources(&format!("{name}.ncu-rep"));
        for page in report::pages(&format!("{name}.source.csv")) {
            let found = sources.iter().find_map(|source| Some((source, report::function_of(source, &page)?)));
            let (source, (mangled, base)) = found.unwrap_or_else(|| panic!("no code for {}", page.kernel));
            kernels += 1;
            check(source, &page, mangled, *base);
        }
    }
    assert!(kernels >= 6, "only {kernels} kernels compared");
}

fn view_of(source: &Source, page: &Page, mangled: &str, base: u64) -> SourceView {
    let files: Vec<_> = source.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    source_view(&SourceInput {
        cubin: Some(&source.cubin),
        function: mangled,
        base_address: Some(base),
        sm: None,
        rows: &page.rows,
        files: &files,
        disassembly: None,
    })
}

/// The registers a SASS text names, base registers only.
fn named(sass: &str, guard: bool) -> BTreeSet<(RegisterFile, u8)> {
    let mut found = BTreeSet::new();
    let text = if guard { sass } else { sass.split_once(' ').filter(|_| sass.starts_with('@')).map_or(sass, |(_, rest)| rest) };
    // Names of special registers and modifiers hold letters that look like registers.
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        for (prefix, file) in [
            ("UR", RegisterFile::Uniform),
            ("R", RegisterFile::General),
            ("UP", RegisterFile::UniformPredicate),
            ("P", RegisterFile::Predicate),
        ] {
            if let Some(number) = word.strip_prefix(prefix).and_then(|digits| digits.parse::<u8>().ok()) {
                found.insert((file, number));
            }
        }
    }
    found
}

fn decoded(instruction: &Instruction) -> Option<BTreeSet<(RegisterFile, u8)>> {
    let registers = instruction.registers()?;
    Some(registers.reads.iter().chain(&registers.writes).map(|range| (range.file, range.first)).collect())
}

#[test]
fn mnemonics_and_registers_equal_nvidias_disassembly() {
    let (mut mnemonics, mut registers, mut guards, mut branches) = (0, 0, 0, 0);
    let mut differences = Vec::new();
    for_each_kernel("mnemonics and registers", |source, page, mangled, base| {
        let cubin = Cubin::parse(&source.cubin).unwrap();
        let function = cubin.function(mangled).unwrap();
        let instructions = decode_all(cubin.code(&function).unwrap(), SmVersion { major: 9, minor: 0 });
        assert_eq!(instructions.len(), page.sass.len(), "{mangled}");
        for (instruction, (address, sass)) in instructions.iter().zip(&page.sass) {
            let mut words = sass.split_whitespace();
            let first = words.next().unwrap();
            let operation = if first.starts_with('@') { words.next().unwrap() } else { first };
            let expected = operation.split('.').next();
            mnemonics += 1;
            if instruction.mnemonic() != expected {
                differences.push(format!("{sass}: {:?}", instruction.mnemonic()));
            }
            let guard = instruction.guard();
            let written = match (guard.predicate, guard.negated) {
                (None, _) => String::new(),
                (Some(number), false) => format!("P{number}"),
                (Some(number), true) => format!("!P{number}"),
            };
            guards += 1;
            if first.strip_prefix('@').unwrap_or_default().replacen('U', "", 1) != written {
                differences.push(format!("{sass}: guard {written}"));
            }
            // Predicates other than the guard are decoded only where they are written.
            let keep = |set: BTreeSet<(RegisterFile, u8)>| -> BTreeSet<(RegisterFile, u8)> {
                set.into_iter().filter(|(file, _)| matches!(file, RegisterFile::General | RegisterFile::Uniform)).collect()
            };
            if let Some(decoded) = decoded(instruction) {
                registers += 1;
                if keep(decoded.clone()) != keep(named(sass, false)) {
                    differences.push(format!("{sass}: registers {decoded:?}"));
                }
            }
            if expected == Some("BRA")
                && let Some(target) = sass.rsplit_once("0x").and_then(|(_, digits)| u64::from_str_radix(digits, 16).ok())
            {
                branches += 1;
                let distance = instruction.branch_distance().unwrap();
                if (address + 16).checked_add_signed(distance) != Some(target) {
                    differences.push(format!("{sass} at {address:#x} (base {base:#x}): distance {distance:#x}"));
                }
            }
        }
    });
    if report::folder().is_none() {
        return;
    }
    let summary = format!("{mnemonics} mnemonics, {guards} guards, {registers} sets of registers, {branches} jump targets compared");
    report::say(&format!("{summary}, {} differ", differences.len()));
    assert!(differences.is_empty(), "{summary}; {} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(mnemonics > 6000 && registers > 6000 && branches > 50, "{summary}");
}

#[test]
fn the_view_repeats_the_recorded_samples() {
    let (mut cells, mut rows_with_line) = (0_usize, 0_usize);
    for_each_kernel("samples", |source, page, mangled, base| {
        let view = view_of(source, page, mangled, base);
        assert_eq!(view.instructions.len(), page.rows.len());
        for (shown, recorded) in view.instructions.iter().zip(&page.rows) {
            assert_eq!(shown.address, recorded.address - base);
            assert_eq!((shown.samples, shown.executed), (recorded.samples, recorded.executed));
            assert_eq!((shown.not_issued, shown.threads_executed), (recorded.not_issued, recorded.threads_executed));
            for stall in recorded.stalls.iter().filter(|stall| stall.samples > 0) {
                assert!(shown.stalls.contains(stall), "{stall:?}");
                cells += 1;
            }
            cells += 4;
            rows_with_line += usize::from(shown.line.is_some());
        }
        let samples: u64 = page.rows.iter().map(|row| row.samples).sum();
        assert_eq!(view.totals.samples, samples);
        assert_eq!(view.lines.iter().map(|line| line.samples).sum::<u64>(), samples);
        assert!(view.lines.iter().any(|line| line.text.is_some()), "{:?}", view.notes);
    });
    if report::folder().is_some() {
        report::say(&format!("{cells} cells equal, {rows_with_line} instructions with a line"));
        assert!(cells > 20_000 && rows_with_line > 5000, "{cells} cells, {rows_with_line} rows with a line");
    }
}

#[test]
fn executions_by_mnemonic_equal_the_profilers_own_count() {
    let mut compared = 0;
    let mut counts = Vec::new();
    if report::folder().is_some() {
        counts = REPORTS.iter().flat_map(|name| report::opcode_counts(&format!("{name}.ncu-rep"))).collect();
    }
    for_each_kernel("opcode counts", |source, page, mangled, base| {
        let view = view_of(source, page, mangled, base);
        let mut decoded: BTreeMap<String, u64> = BTreeMap::new();
        for row in view.instructions.iter().filter(|row| row.executed.is_some_and(|count| count > 0)) {
            *decoded.entry(row.mnemonic.clone().unwrap_or_default()).or_default() += row.executed.unwrap();
        }
        assert!(counts.contains(&(mangled.to_owned(), decoded.clone())), "{mangled}: {decoded:?}");
        compared += decoded.len();
    });
    if report::folder().is_some() {
        report::say(&format!("{compared} mnemonic counts equal"));
        assert!(compared > 100, "{compared}");
    }
}

#[test]
fn every_scoreboard_stall_has_a_producer_that_feeds_it() {
    let (mut rows, mut samples) = (0, 0);
    for_each_kernel("producers", |source, page, mangled, base| {
        let view = view_of(source, page, mangled, base);
        for row in &view.instructions {
            let waiting: u64 = row.stalls.iter().filter(|stall| stall.reason.ends_with("_sb")).map(|stall| stall.samples).sum();
            if waiting == 0 {
                continue;
            }
            let producer = row.producer.as_ref().unwrap_or_else(|| panic!("{mangled} {:#x}", row.address));
            // NVIDIA's text of both names one register in common: the one written and then used or overwritten.
            let text = |address: u64| &page.sass[(address / 16) as usize].1;
            let (stalled, feeding) = (registers_of(text(row.address)), registers_of(text(producer.address)));
            assert!(!stalled.is_disjoint(&feeding), "{} <- {}", text(row.address), text(producer.address));
            rows += 1;
            samples += waiting;
        }
    });
    if report::folder().is_some() {
        report::say(&format!("{rows} stalled instructions ({samples} samples) have a producer"));
        assert!(rows > 100 && samples > 50_000, "{rows} rows, {samples} samples");
    }
}

/// Registers and predicates a text names; of a load of several registers in a row, all of them.
fn registers_of(sass: &str) -> BTreeSet<(RegisterFile, u8)> {
    let mut found = named(sass, true);
    let count = if sass.contains(".128") {
        4
    } else if sass.contains(".64") {
        2
    } else {
        1
    };
    for (file, first) in found.clone() {
        found.extend((first..first.saturating_add(count)).map(|number| (file, number)));
    }
    found
}

#[test]
fn kernels_of_other_chips_and_profilers_are_decoded_whole() {
    if report::folder().is_none() {
        report::say("other reports skipped: there are none here (LONGPOLE_SHARED names their folder)");
        return;
    }
    // Profilers of 2020.3 (whose cubin is kept as it was loaded), 2022.4 and 2025.3; compute capability 8.0, 7.5 and 9.0.
    let reports = ["speedyscan_profile", "mojo_profile", "graph", "graph_nodes", "two_processes", "kern_basic"];
    let (mut functions, mut instructions) = (0, 0);
    let mut chips = BTreeSet::new();
    for name in reports {
        for source in report::sources(&format!("{name}.ncu-rep")) {
            let cubin = Cubin::parse(&source.cubin).unwrap();
            let sm = cubin.sm_version().unwrap();
            chips.insert(sm);
            for function in cubin.functions() {
                functions += 1;
                for (index, instruction) in decode_all(cubin.code(&function).unwrap(), sm).iter().enumerate() {
                    instructions += 1;
                    assert!(instruction.mnemonic().is_some(), "{name} {} {:#x}: {:#x}", function.name, index * 16, instruction.opcode());
                }
            }
        }
    }
    report::say(&format!("{instructions} instructions of {functions} functions decoded"));
    let expected = [(7, 5), (8, 0), (8, 6), (9, 0)].map(|(major, minor)| SmVersion { major, minor });
    assert!(chips.iter().all(|chip| expected.contains(chip)) && chips.len() >= 3, "{chips:?}");
    assert!(functions > 10 && instructions > 4000, "{functions} functions, {instructions} instructions");
}
