//! Bytes as what a suite of benchmarks prints: a list, the lines of a run, and a file of saved results.
//!
//! Nothing may panic; an event that was read is written as the same event; samples that the order accepts are numbered from 0 without a gap.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_bench::protocol::{Event, Events, Line, Sequence, read_list};
use longpole_bench::results::Results;

fuzz_target!(|data: &[u8]| {
    if let Ok(list) = read_list(data) {
        let text = serde_json::to_vec(&list).expect("a list is JSON");
        assert_eq!(read_list(text.as_slice()).expect("what was written is a list"), list);
    }
    if let Ok(results) = Results::parse(data) {
        let text = serde_json::to_vec(&results).expect("results are JSON");
        assert_eq!(Results::parse(&text).expect("what was written are results"), results);
    }
    let (mut sequence, mut next) = (Sequence::new(), 0);
    for line in Events::new(data) {
        let Ok(Line::Event(event)) = line else { continue };
        let written = event.to_line();
        match Events::new(written.as_bytes()).next() {
            Some(Ok(Line::Event(again))) => assert_eq!(again.to_line(), written),
            other => panic!("{written} was read as {other:?}"),
        }
        if sequence.accept(&event).is_err() {
            continue;
        }
        match *event {
            Event::Start(_) => next = 0,
            Event::Sample(sample) => {
                assert_eq!(sample.index, next);
                next += 1;
            }
            Event::End(end) => assert_eq!(end.samples, next),
            _ => {}
        }
    }
});
