//! Bytes into the importer of Nsight Systems exports, then every table over what it read.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_analysis::{GroupBy, Scope, TraceIndex, family_table, kernel_table, memory_table, op_table, range_table, totals};
use longpole_ingest::{Imported, import_bytes};

/// All that can be asked of a trace, as text.
fn answers(imported: &Imported) -> String {
    let index = TraceIndex::new(&imported.trace);
    let scope = Scope::whole();
    let tables = [GroupBy::Name, GroupBy::Shape, GroupBy::Stack(3)].map(|by| op_table(&index, &scope, by));
    format!(
        "{} events\n{tables:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        imported.trace.events_read,
        kernel_table(&index, &scope),
        family_table(&index, &scope),
        range_table(&index, &scope),
        memory_table(&index, &scope),
        totals(&index, &scope),
    )
}

/// The first bytes of a database, without which another importer would get the rest.
const MAGIC: &[u8] = b"SQLite format 3\0";

fuzz_target!(|data: &[u8]| {
    let data = &[MAGIC, data.get(MAGIC.len()..).unwrap_or_default()].concat();
    let alone = import_bytes(data, 1).ok().map(|imported| answers(&imported));
    let together = import_bytes(data, 3).ok().map(|imported| answers(&imported));
    assert_eq!(alone, together, "the number of threads changed the result");
});
