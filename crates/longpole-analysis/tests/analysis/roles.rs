//! Roles of the places of real steps.

use std::collections::BTreeMap;

use longpole_analysis::{
    BorrowedRoles, Part, RoleSource, Scope, StepGroup, StepNote, StepOptions, StepTable, TraceIndex, borrow_roles, role_donors, step_table,
};
use longpole_trace::{Ns, Trace};

use crate::slow_reader;
use crate::torch_table::corpus;

fn find(trace: &Trace) -> StepTable {
    let table = step_table(&TraceIndex::new(trace), &Scope::whole(), &StepOptions::default());
    if std::env::var_os("DUMP").is_some() {
        for group in &table.groups {
            eprintln!("== {} {:?}", group.name, group.notes);
            for row in &group.rows {
                eprintln!("{:?} {:?} {:40} {:?} {} | {}", row.part, row.place, row.role, row.role_from, row.total_ns.get(), row.kernel);
            }
        }
    }
    table
}

fn read(name: &str) -> Trace {
    slow_reader::read(&corpus().join(format!("{name}.json.gz")))
}

#[test]
fn dump() {
    for name in std::env::var("DUMP").unwrap_or_default().split(',').filter(|name| !name.is_empty()) {
        eprintln!("#### {name}");
        find(&read(name));
    }
    if std::env::var_os("DUMP").is_some() {
        let eager = read("qwen3_eager");
        let donors = role_donors(&eager, &find(&eager));
        let graph = read("qwen3_graph");
        let mut table = find(&graph);
        let borrowed = borrow_roles(&graph, &mut table.groups[0], &donors).unwrap();
        eprintln!("{borrowed} {borrowed:?}");
        for row in &table.groups[0].rows {
            eprintln!("{:?} {:?} {:40} {:?} {} | {}", row.part, row.place, row.role, row.role_from, row.total_ns.get(), row.kernel);
        }
    }
}
