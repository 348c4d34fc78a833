//! The rows of a scope and of its slice, on random traces: nested, tied and empty events of few names, so that windows cut what they can.

use longpole_analysis::{GroupBy, Scope, ScopeSpec, TraceIndex, family_table, kernel_table, memory_table, op_table, range_table};
use longpole_ingest::import_bytes;
use longpole_report::{ChromeError, ChromeOrigin, ChromeTrace};
use longpole_trace::Ns;
use proptest::prelude::*;

/// Builds a trace out of random bytes.
struct Maker<'a> {
    bytes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    events: Vec<String>,
    thread: i64,
    correlation: u64,
    /// Operators so far: each has an id of its own.
    operators: i64,
}

impl Maker<'_> {
    fn pick(&mut self, below: i64) -> i64 {
        i64::from(*self.bytes.next().unwrap()) % below
    }

    fn event(&mut self, cat: &str, name: &str, place: (i64, i64), (start, dur): (i64, i64), args: &str) {
        let (pid, tid) = place;
        self.events.push(format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{start},"dur":{dur},"args":{{{args}}}}}"#
        ));
    }

    /// Events one after the other between two times, and others inside them; `around` is the operator that they are in, and its end.
    fn fill(&mut self, mut from: i64, to: i64, depth: i64, around: Option<(i64, i64)>) {
        let host = (100, self.thread);
        while from < to && self.events.len() < 120 {
            let start = from + self.pick(3) * self.pick(4);
            let dur = self.pick(2) * self.pick(40);
            let end = (start + dur).min(to);
            if start > to {
                return;
            }
            let mut inside = around;
            let (times, name) = ((start, end - start), ["a", "b", "c"][self.pick(3) as usize]);
            match self.pick(6) {
                0 => self.event("user_annotation", name, host, times, ""),
                1..=3 => {
                    self.operators += 1;
                    inside = Some((self.operators, end));
                    let (id, size) = (self.operators, self.pick(3));
                    self.event("cpu_op", name, host, times, &format!(r#""External id":{id},"Input Dims":[[{size}],[]]"#));
                }
                4 => {
                    let bytes = (self.pick(9) - 4) * 64;
                    let (kind, pid, tid) = (self.pick(2), host.0, host.1);
                    self.events.push(format!(
                        r#"{{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":{pid},"tid":{tid},"ts":{start},"s":"t","args":{{"Bytes":{bytes},"Device Type":{kind}}}}}"#
                    ));
                }
                _ => {
                    self.correlation += 1;
                    let id = self.correlation;
                    self.event("cuda_runtime", name, host, times, &format!(r#""correlation":{id}"#));
                    if self.pick(4) > 0 {
                        let work = (end + self.pick(60), self.pick(9));
                        let args = match (self.pick(8), around.filter(|(_, end)| start < *end)) {
                            (0, _) => format!(r#""correlation":{}"#, id + 1_000),
                            (_, None) => format!(r#""correlation":{id}"#),
                            (_, Some((operator, _))) => format!(r#""correlation":{id},"External id":{operator}"#),
                        };
                        let args = format!(r#""device":0,"stream":7,{args}"#);
                        self.event("kernel", name, (0, 7), work, &args);
                    }
                }
            }
            if depth > 0 {
                self.fill(start, end, depth - 1, inside);
            }
            from = end.max(start) + self.pick(2) * self.pick(9);
            if self.pick(30) == 0 {
                return;
            }
            // Time goes on even where all events are empty.
            from += i64::from(end == start) * self.pick(2);
        }
    }
}

fn made(bytes: &[u8]) -> String {
    let mut maker = Maker { bytes: bytes.iter().cycle(), events: Vec::new(), thread: 1, correlation: 0, operators: 0 };
    for thread in 1..=2 {
        maker.thread = thread;
        let events = maker.events.len();
        for round in 0..4 {
            if maker.events.len() < events + 60 {
                maker.fill(1 + round * 60, 61 + round * 60, 4, None);
            }
        }
    }
    format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, maker.events.join(",\n"))
}

/// Every table of a scope, as text. Ranges in order of their names: theirs is of first occurrence, which may lie outside.
fn rows(index: &TraceIndex<'_>, scope: &Scope) -> String {
    let mut ranges: Vec<String> = range_table(index, scope).iter().map(|row| format!("{row:?}")).collect();
    ranges.sort();
    let mut kernels = kernel_table(index, scope);
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    let (ops, families, memory) = (op_table(index, scope, GroupBy::Shape), family_table(index, scope), memory_table(index, scope));
    let mut by_name: Vec<String> = ops.rows.iter().map(|row| format!("{row:?}")).collect();
    by_name.sort();
    let totals = (ops.self_cpu_total_ns, ops.self_cuda_total_ns);
    format!("{by_name:#?}\n{totals:?}\n{kernels:#?}\n{families:#?}\n{ranges:#?}\n{memory:#?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_slice_has_the_rows_of_its_scope(
        bytes in proptest::collection::vec(any::<u8>(), 20..400),
        from in 0_i64..260_000,
        length in 1_i64..120_000,
        range in proptest::option::of("[abc]"),
        with_time in any::<bool>(),
    ) {
        let whole = import_bytes(made(&bytes).as_bytes(), 1);
        prop_assume!(whole.is_ok());
        let whole = whole.unwrap().trace;
        let index = TraceIndex::new(&whole);
        let time = (with_time || range.is_none()).then_some((Ns(from), Ns(from + length)));
        let scope = Scope::resolve(&index, &ScopeSpec { range, time, ..ScopeSpec::default() });
        prop_assume!(scope.is_ok());
        let scope = scope.unwrap();
        let part = match ChromeTrace::new(&index, &scope) {
            Ok(part) => part,
            Err(ChromeError::Nothing) => {
                prop_assert!(op_table(&index, &scope, GroupBy::Name).rows.is_empty());
                return Ok(());
            }
            Err(other) => panic!("{other:?}"),
        };
        let mut text = Vec::new();
        part.write(&mut text, ChromeOrigin { writer: "test", source: "made", part: "some", lost: &[] }).unwrap();
        let copy = import_bytes(&text, 1);
        // Events of one instant alone are taken for events whose time was never set.
        prop_assume!(!copy.as_ref().is_err_and(|error| error.to_string().contains("start at the same time")));
        let copy = copy.unwrap().trace;
        let index_of_copy = TraceIndex::new(&copy);
        let all = Scope::resolve(&index_of_copy, &ScopeSpec::default()).unwrap();
        let (expected, found) = (rows(&index, &scope), rows(&index_of_copy, &all));
        let difference: Vec<_> = expected.lines().zip(found.lines()).filter(|(a, b)| a != b).take(4).collect();
        prop_assert!(expected == found, "{difference:#?}\n{}\n{}", made(&bytes), String::from_utf8(text).unwrap());
    }
}
