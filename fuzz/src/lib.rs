//! What the targets of importers share.

use longpole_analysis::{
    GroupBy, Scope, TraceIndex, TriageOptions, family_table, idle_table, kernel_sums, kernel_table, memory_table, op_table, range_table,
    scope_sums, sums_triage, totals, triage,
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

/// All that can be asked of sums, as text.
fn answers_of_sums(imported: &Imported) -> String {
    let (trace, scope) = (&imported.trace, Scope::whole());
    let scopes = scope_sums(trace, &scope);
    let paths: usize = scopes.rows.iter().map(|row| scopes.parents(trace, row).len() + scopes.name(trace, row).len()).sum();
    format!(
        "{} nodes {paths}\n{:?}\n{:?}\n{:?}",
        trace.aggregates.len(),
        kernel_sums(trace, &scope),
        scopes,
        sums_triage(trace, &scope, None, false)
    )
}

/// Reads the bytes of a profile that holds sums, and asks everything of it: nothing may panic, and no time may appear twice.
pub fn sums_are_sums(data: &[u8]) {
    let Ok(imported) = import_bytes(data, 1) else { return };
    if !imported.trace.has_totals_only() {
        return;
    }
    assert!(!answers_of_sums(&imported).is_empty());
    let table = &imported.trace.aggregates;
    let of_rows = (0..table.len()).filter_map(|row| table.device_ns(row)).fold(0_i64, |sum, time| sum.saturating_add(time.get()));
    let kernels = kernel_sums(&imported.trace, &Scope::whole());
    let in_table = kernels.iter().filter_map(|row| row.cuda_ns).fold(0_i64, |sum, time| sum.saturating_add(time.get()));
    assert_eq!(in_table, of_rows, "time was lost or counted twice");
}

/// Reads bytes with one thread and with three, and asks everything of both: nothing may panic, and the results are the same.
pub fn reads_the_same_with_any_threads(data: &[u8]) {
    let alone = import_bytes(data, 1).ok().map(|imported| answers(&imported));
    let together = import_bytes(data, 3).ok().map(|imported| answers(&imported));
    assert_eq!(alone, together, "the number of threads changed the result");
}

/// The same, with bytes behind the beginning of a document that tells whose events it holds.
pub fn events_after(head: &str, data: &[u8]) {
    reads_the_same_with_any_threads(&[head.as_bytes(), data].concat());
}
