//! Bytes into the importer of TensorRT's layer profiles, then every table over what it read.
//!
//! Nothing may panic, and the tables hold all time that the rows do.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::sums_are_sums;

/// The first bytes of such a file, without which another importer would get the rest.
const MAGIC: &[u8] = b"[{\"count\":";

fuzz_target!(|data: &[u8]| sums_are_sums(&[MAGIC, data.get(MAGIC.len()..).unwrap_or_default()].concat()));
