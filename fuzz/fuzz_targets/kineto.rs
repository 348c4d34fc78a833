//! Bytes into the Kineto importer, then every table over what it read.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::reads_the_same_with_any_threads;

fuzz_target!(|data: &[u8]| reads_the_same_with_any_threads(data));
