//! Bytes into the importer of ONNX Runtime's profiles, then every table over what it read.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::events_after;

/// What tells this importer from the others.
const HEAD: &str = r#"[{"cat" : "Session","pid" :1,"tid" :1,"dur" :9,"ts" :1,"ph" : "X","name" :"model_run","args" : {}},"#;

fuzz_target!(|data: &[u8]| events_after(HEAD, data));
