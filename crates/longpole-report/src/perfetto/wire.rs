//! Protobuf messages of a Perfetto trace, as bytes.
//!
//! A dozen messages with a few fields each are written, millions of times, so they are put together directly: a general encoder would
//! allocate a message for each. Field numbers are facts of Perfetto's public definitions (`protos/perfetto/trace`); ours are the names.
//!
//! ```text
//! Trace          1 packet*
//! TracePacket    8 timestamp   10 sequence id   11 TrackEvent   12 InternedData   13 sequence flags   60 TrackDescriptor
//! TrackEvent     3 category iid   4 DebugAnnotation*   9 type   10 name iid   11 track uuid   30 counter value
//!                47 flow id (fixed64)   48 terminating flow id (fixed64)
//! TrackDescriptor 1 uuid   2 name   3 process {1 pid, 6 name}   4 thread {1 pid, 2 tid, 5 name}   5 parent uuid
//!                8 counter {3 unit}   11 order of children   12 rank among siblings
//! InternedData   1 categories   2 event names   3 names of annotations   29 string values of annotations   each {1 iid, 2 text}
//! DebugAnnotation 1 name iid   3 unsigned   4 signed   6 text   17 text iid
//! ```

/// Appends a base-128 number.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number as a field.
pub(super) fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, value);
}

/// Appends a signed number as a field of type `int64` or `int32`: two's complement, not zigzag.
pub(super) fn signed(out: &mut Vec<u8>, field: u32, value: i64) {
    number(out, field, value as u64);
}

/// Appends a number of eight bytes as a field.
pub(super) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends bytes, a text or a message as a field.
pub(super) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a text with its number, as tables of interned data hold them.
pub(super) fn interned(out: &mut Vec<u8>, field: u32, iid: u64, text: &str) {
    let mut entry = Vec::with_capacity(text.len() + 12);
    number(&mut entry, 1, iid);
    bytes(&mut entry, 2, text.as_bytes());
    bytes(out, field, &entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let of = |value| {
            let mut out = Vec::new();
            varint(&mut out, value);
            out
        };
        assert_eq!(of(0), [0]);
        assert_eq!(of(127), [127]);
        assert_eq!(of(300), [0xac, 2]);
        assert_eq!(of(u64::MAX), [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }

    #[test]
    fn fields_begin_with_their_number_and_kind() {
        let mut out = Vec::new();
        number(&mut out, 1, 5);
        signed(&mut out, 30, -1);
        fixed64(&mut out, 47, 7);
        bytes(&mut out, 2, b"ab");
        interned(&mut out, 2, 3, "x");
        let mut expected = vec![8, 5, 0xf0, 1];
        expected.extend([255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        expected.extend([0xf9, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0x12, 2, b'a', b'b', 0x12, 5, 8, 3, 0x12, 1, b'x']);
        assert_eq!(out, expected);
    }
}
