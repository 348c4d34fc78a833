//! What the targets of importers share.

use longpole_analysis::{
    GroupBy, Scope, TraceIndex, TriageOptions, family_table, idle_table, kernel_table, memory_table, op_table, range_table, totals, triage,
};
use longpole_ingest::{Imported, import_bytes};

/// All that can be asked of a trace, as text.
fn answers(imported: &Imported) -> String {
    let index = TraceIndex::new(&imported.trace);
    let scope = Scope::whole();
    let tables = [GroupBy::Name, GroupBy::Shape, GroupBy::Stack(3)].map(|by| op_table(&index, &scope, by));
    format!(
        "{} events\n{tables:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        imported.trace.events_read,
        kernel_table(&index, &scope),
        family_table(&index, &scope),
        range_table(&index, &scope),
        memory_table(&index, &scope),
        totals(&index, &scope),
        idle_table(&index, &scope),
        triage(&index, &scope, &TriageOptions::default()),
    )
}

/// Reads bytes with one thread and with three, and asks everything of both: nothing may panic, and the results are the same.
pub fn reads_the_same_with_any_threads(data: &[u8]) {
    let alone = import_bytes(data, 1).ok().map(|imported| answers(&imported));
    let together = import_bytes(data, 3).ok().map(|imported| answers(&imported));
    assert_eq!(alone, together, "the number of threads changed the result");
}
