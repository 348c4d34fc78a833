//! The innermost function of each CPU sample.
//!
//! A sample has a number, and a row of another table for each function that was on its stack, the innermost at depth 0. Only that one is
//! read: it says what the processor was running.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Problems, StrId};

use super::database::Database;
use super::merge::Merger;
use super::scan::{Scan, Values};
use super::tables;

/// Functions by the number of their sample, in order of number.
#[derive(Debug, Default)]
pub(super) struct Leaves(Vec<(i64, StrId)>);

/// Sample, symbol, and the file where no symbol is known.
type Row = (i64, Option<i64>, Option<i64>);

impl Leaves {
    /// Reads the functions of all samples.
    pub(super) fn read(database: &Database, threads: usize, merger: &mut Merger<'_, '_>) -> Self {
        let wanted = |table: &&super::database::Table| ["id", "symbol", "stackDepth"].iter().all(|column| table.has(column));
        let Some(table) = database.table(tables::CHAINS).filter(wanted) else { return Self::default() };
        let make = |found: &mut Vec<Row>, values: &mut Values<'_, '_>| {
            let is_resolved = values.int(3).unwrap_or(0) == 0;
            if let Some(sample) = values.int(0) {
                found.push((sample, values.int(1).filter(|_| is_resolved), values.int(2)));
            }
        };
        let (mut leaves, mut known) = (Vec::new(), HashMap::<_, StrId, FixedState>::default());
        let mut problems = Problems::default();
        Scan::new(database, table, tables::CHAIN_COLUMNS, Some("\"stackDepth\" = 0")).run(threads, &mut problems, make, |found| {
            for (sample, symbol, module) in found.drain(..) {
                let key = (symbol, symbol.map_or(module, |_| None));
                let name = *known.entry(key).or_insert_with(|| name(merger, key.0, key.1));
                leaves.push((sample, name));
            }
        });
        merger.problems.extend(problems);
        if !leaves.is_sorted_by_key(|(sample, _)| *sample) {
            leaves.sort_by_key(|(sample, _)| *sample);
        }
        Self(leaves)
    }

    /// The function of a sample.
    pub(super) fn find(&self, sample: i64) -> Option<StrId> {
        let at = self.0.partition_point(|(other, _)| *other < sample);
        self.0.get(at).filter(|(other, _)| *other == sample).map(|(_, name)| *name)
    }
}

/// A function by its symbol; without one, the file that it is in.
fn name(merger: &mut Merger<'_, '_>, symbol: Option<i64>, module: Option<i64>) -> StrId {
    let strings = &mut merger.builder.trace_mut().strings;
    match (symbol, module) {
        (Some(symbol), _) => merger.names.get(symbol, strings, &mut merger.problems),
        (None, Some(module)) => {
            let path = merger.names.get(module, strings, &mut merger.problems);
            let path = strings.get(path);
            let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
            let text = format!("(somewhere in {file})");
            strings.intern(&text)
        }
        (None, None) => strings.intern("(no function recorded)"),
    }
}
