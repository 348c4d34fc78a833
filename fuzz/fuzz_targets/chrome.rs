//! Bytes into the importer of other Chrome traces, then every table over what it read.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::events_after;

/// What tells this importer from the others.
const HEAD: &str = r#"[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},"#;

fuzz_target!(|data: &[u8]| events_after(HEAD, data));
