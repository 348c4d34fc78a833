//! Our operator table against torch's own, on every corpus trace that has one.

use crate::slow_reader;
use crate::torch_table::{CASES, corpus, differences};

#[test]
fn host_rows_equal_torch() {
    let read = |name: &str| slow_reader::read(&corpus().join(format!("{name}.json.gz")));
    let found: Vec<String> = CASES.iter().flat_map(|&(trace, table, by)| differences(&read(trace), table, by)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
