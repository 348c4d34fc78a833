//! Bytes into the reader of recordings and through the importer, then every table over what was read; and the same bytes as what a page
//! holds, which checksums would keep from being reached.
//!
//! Nothing may panic, and the number of threads may not change a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_fuzz::reads_the_same_with_any_threads;
use longpole_recording::{Header, Kernel, Nvtx, Record, Writer};

/// A header, without which another importer would get the rest.
fn header() -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = Writer::new(&mut bytes, Header { pid: 1, started_at_ns: 1 });
    bytes
}

/// Numbers as records of two families.
fn records(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(mut writer) = Writer::new(&mut bytes, Header { pid: 1, started_at_ns: 1 }) else { return bytes };
    let words: Vec<u64> = data.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    writer.string(data);
    for row in words.chunks(25) {
        writer.record(&Kernel::from_words(row));
        writer.record(&Nvtx::from_words(row));
    }
    writer.flush();
    bytes
}

fuzz_target!(|data: &[u8]| {
    reads_the_same_with_any_threads(&[header(), data.to_vec()].concat());
    reads_the_same_with_any_threads(&records(data));
});
