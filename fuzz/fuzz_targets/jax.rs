//! Bytes into the importer of XLA's traces, then every table over what it read.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::events_after;

/// What tells this importer from the others, and the processes that events are of.
const HEAD: &str = r#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},"#;

fuzz_target!(|data: &[u8]| events_after(HEAD, data));
