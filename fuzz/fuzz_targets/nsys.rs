//! Bytes into the importer of Nsight Systems exports, then every table over what it read.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::reads_the_same_with_any_threads;

/// The first bytes of a database, without which another importer would get the rest.
const MAGIC: &[u8] = b"SQLite format 3\0";

fuzz_target!(|data: &[u8]| reads_the_same_with_any_threads(&[MAGIC, data.get(MAGIC.len()..).unwrap_or_default()].concat()));
