//! Bytes into the Kineto importer.
//!
//! Nothing may panic, and the number of threads may not change what is read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_ingest::import_bytes;

fuzz_target!(|data: &[u8]| {
    let events = |threads| import_bytes(data, threads).ok().map(|imported| imported.trace.events_read);
    assert_eq!(events(1), events(3), "the number of threads changed the result");
});
