//! The table of source lines.

use super::build::Sums;
use super::{InstructionRow, LineRow};
use std::collections::BTreeMap;

/// File and line.
pub(super) type Place<'a> = (Option<&'a str>, Option<u32>);

/// Rows of a table of lines, given the line each instruction counts for.
pub(super) fn line_rows(
    instructions: &[InstructionRow],
    total: u64,
    files: &[(&str, &str)],
    place: impl for<'a> Fn(&'a InstructionRow) -> Place<'a>,
) -> Vec<LineRow> {
    let mut lines: BTreeMap<Place<'_>, (usize, Sums<'_>)> = BTreeMap::new();
    for row in instructions {
        let (count, sums) = lines.entry(place(row)).or_default();
        *count += 1;
        sums.add_parts(row.samples, row.not_issued, &row.stalls, row.executed, row.threads_executed);
    }
    let mut texts: BTreeMap<&str, Option<Vec<&str>>> = BTreeMap::new();
    let mut rows: Vec<LineRow> = lines
        .into_iter()
        .map(|((file, line), (instructions, sums))| LineRow {
            file: file.map(str::to_owned),
            line,
            text: file.zip(line).and_then(|(file, line)| {
                let text = texts.entry(file).or_insert_with(|| Some(text_of(file, files)?.lines().collect())).as_ref()?;
                text.get((line as usize).checked_sub(1)?).map(|&text| text.to_owned())
            }),
            samples: sums.samples,
            share: share(sums.samples, total),
            stalls: sums.sorted_stalls(),
            instructions,
            executed: sums.executed,
        })
        .collect();
    // The map is ordered by file and line and the sort stable; instructions without a line go behind others of as many samples.
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.line.is_none()));
    rows
}

/// The stored text of a file: the same path, else the one path that ends in the same components.
fn text_of<'a>(path: &str, files: &[(&str, &'a str)]) -> Option<&'a str> {
    if let Some(&(_, text)) = files.iter().find(|(stored, _)| *stored == path) {
        return Some(text);
    }
    let common = |stored: &str| {
        let (left, right) = (components(path), components(stored));
        left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count()
    };
    let best = files.iter().map(|(stored, _)| common(stored)).max().filter(|&count| count > 0)?;
    let mut matching = files.iter().filter(|(stored, _)| common(stored) == best);
    let &(_, text) = matching.next()?;
    matching.next().is_none().then_some(text)
}

/// The components of a path, `.` and `..` resolved. Windows paths occur in reports too.
fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// A part of all samples.
pub(super) fn share(samples: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| samples as f64 / total as f64)
}
