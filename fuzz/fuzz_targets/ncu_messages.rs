//! Bytes as one result or one piece of source data of a Nsight Compute report whose container is sound.
//!
//! The first byte says what they are. Nothing may panic, and the results beside them stay.

#![no_main]

use libfuzzer_sys::fuzz_target;
use longpole_ncu::Report;

/// Appends bytes with their size in front of them.
fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a varint.
fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A block with one entry, counted by this field of the header.
fn put_block(counted_by: u8, entry: &[u8], out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    put_sized(entry, &mut payload);
    let mut header = vec![counted_by << 3, 1, 5 << 3];
    put_varint(payload.len() as u64, &mut header);
    put_sized(&header, out);
    out.extend(payload);
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, message)) = data.split_first() else { return };
    let mut bytes = b"NVR\0\x02\0\0\0\x08\x07".to_vec();
    // Sixteen names, `m0` to `mF`.
    let names: Vec<u8> = (b'0'..=b'9').chain(b'A'..=b'F').flat_map(|digit| [0x0a, 2, b'm', digit]).collect();
    let mut header = vec![0x22, names.len() as u8];
    header.extend(names);
    put_sized(&header, &mut bytes);
    let counted_by = [1, 2, 7, 8, 9][usize::from(kind) % 5];
    put_block(counted_by, message, &mut bytes);
    // A kernel called "sound" behind it, with a reference to source data 1.
    put_block(2, b"\x3a\x05sound\x7a\x02\x08\x01", &mut bytes);
    let report = Report::read(&bytes[..], "fuzz").expect("it is a report");
    let everything = report.select().values(|_| true).instances(|_| true).rules().sections().nvtx();
    let results = report.decode_all(&everything);
    assert!(results.last().is_some_and(|result| result.name == "sound"), "the sound result was lost");
    for result in &results {
        report.source_of(result);
        for rule in &result.rules {
            assert!(rule.messages.iter().all(|message| message.speedup.is_none_or(|(_, percent)| percent.is_finite())));
        }
    }
});
