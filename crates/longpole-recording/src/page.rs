//! Payloads: texts and columns, packed and unpacked.

use crate::frame::{MAX_BODY_BYTES, MAX_EXPANSION, u16_at, u32_at};

/// Length of what stands before the body of a payload.
pub(crate) const PAYLOAD_HEADER_BYTES: usize = 16;

/// Bodies below this are stored as they are: packing them would not make them smaller.
const STORED_BELOW_BYTES: usize = 128;

/// The compression level: the fastest of the ordinary ones, since it runs on the machine that is measured.
const LEVEL: i32 = 1;

/// What stands before the body of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadHeader {
    pub(crate) records: usize,
    pub(crate) columns: usize,
    pub(crate) packed: bool,
    pub(crate) first_id: u32,
    pub(crate) body_bytes: usize,
}

impl PayloadHeader {
    /// Reads it, and checks that the body may be as long as it says.
    pub(crate) fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (header, body) = payload.split_at_checked(PAYLOAD_HEADER_BYTES)?;
        let packed = match u16_at(header, 6) {
            0 => false,
            1 => true,
            _ => return None,
        };
        let this = Self {
            records: u32_at(header, 0) as usize,
            columns: usize::from(u16_at(header, 4)),
            packed,
            first_id: u32_at(header, 8),
            body_bytes: u32_at(header, 12) as usize,
        };
        let may_be = if packed { body.len().saturating_mul(MAX_EXPANSION).min(MAX_BODY_BYTES) } else { body.len() };
        // A number takes at least a byte, a text at least four.
        let numbers = this.records.checked_mul(this.columns.max(1))?;
        (this.body_bytes <= may_be && numbers <= this.body_bytes && (packed || this.body_bytes == body.len())).then_some((this, body))
    }

    fn encode(self) -> [u8; PAYLOAD_HEADER_BYTES] {
        let mut bytes = [0; PAYLOAD_HEADER_BYTES];
        bytes[..4].copy_from_slice(&(self.records as u32).to_le_bytes());
        bytes[4..6].copy_from_slice(&(self.columns as u16).to_le_bytes());
        bytes[6..8].copy_from_slice(&u16::from(self.packed).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.first_id.to_le_bytes());
        bytes[12..].copy_from_slice(&(self.body_bytes as u32).to_le_bytes());
        bytes
    }
}

/// Packs bodies into payloads, with memory that is used again.
pub(crate) struct Packer {
    // Absent only when the library could not make one, for want of memory; bodies are stored then.
    compressor: Option<zstd::bulk::Compressor<'static>>,
    payload: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self { compressor: zstd::bulk::Compressor::new(LEVEL).ok(), payload: Vec::new() }
    }

    /// The payload of a body.
    pub(crate) fn pack(&mut self, records: usize, columns: usize, first_id: u32, body: &[u8]) -> &[u8] {
        self.payload.clear();
        let mut header = PayloadHeader { records, columns, packed: false, first_id, body_bytes: body.len() };
        if body.len() >= STORED_BELOW_BYTES
            && let Some(compressor) = &mut self.compressor
        {
            self.payload.resize(PAYLOAD_HEADER_BYTES + zstd::zstd_safe::compress_bound(body.len()), 0);
            if let Some(room) = self.payload.get_mut(PAYLOAD_HEADER_BYTES..)
                && let Ok(length) = compressor.compress_to_buffer(body, room)
                && length < body.len()
                && body.len() <= length.saturating_mul(MAX_EXPANSION)
            {
                self.payload.truncate(PAYLOAD_HEADER_BYTES + length);
                header.packed = true;
                self.payload[..PAYLOAD_HEADER_BYTES].copy_from_slice(&header.encode());
                return &self.payload;
            }
            self.payload.clear();
        }
        self.payload.extend_from_slice(&header.encode());
        self.payload.extend_from_slice(body);
        &self.payload
    }
}

/// The body of a payload; `None` when it cannot be unpacked to the length it should have.
pub(crate) fn unpack(header: PayloadHeader, body: &[u8]) -> Option<Vec<u8>> {
    if !header.packed {
        return Some(body.to_vec());
    }
    let unpacked = zstd::bulk::decompress(body, header.body_bytes).ok()?;
    (unpacked.len() == header.body_bytes).then_some(unpacked)
}

/// Appends the columns of records that stand row by row in `words`.
pub(crate) fn encode_columns(words: &[u64], columns: usize, body: &mut Vec<u8>) {
    for column in 0..columns {
        let length_at = body.len();
        body.extend_from_slice(&[0; 4]);
        let mut before = 0_u64;
        for &word in words.iter().skip(column).step_by(columns) {
            put_number(body, zigzag(word.wrapping_sub(before)));
            before = word;
        }
        let length = (body.len() - length_at - 4) as u32;
        body[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads columns into rows of `wanted` numbers; columns behind those are passed over, missing ones are zero. `None` when they are
/// damaged.
pub(crate) fn decode_columns(body: &[u8], records: usize, columns: usize, wanted: usize) -> Option<Vec<u64>> {
    let mut rows = vec![0_u64; records.checked_mul(wanted)?];
    let mut rest = body;
    for column in 0..columns.min(wanted) {
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let numbers = rest.get(4..)?.get(..length)?;
        rest = &rest[4 + length..];
        let mut at = 0;
        let mut before = 0_u64;
        for slot in rows.iter_mut().skip(column).step_by(wanted) {
            before = before.wrapping_add(unzigzag(take_number(numbers, &mut at)?));
            *slot = before;
        }
        if at != numbers.len() {
            return None;
        }
    }
    Some(rows)
}

/// Small numbers of either sign as small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference.cast_signed() >> 63).cast_unsigned())
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_come_back(words in proptest::collection::vec(any::<u64>(), 0..200), columns in 1_usize..7) {
            let records = words.len() / columns;
            let words = &words[..records * columns];
            let mut body = Vec::new();
            encode_columns(words, columns, &mut body);
            prop_assert_eq!(decode_columns(&body, records, columns, columns).unwrap(), words);
            // A reader that knows one column more or less.
            let wider = decode_columns(&body, records, columns, columns + 1).unwrap();
            let narrower = decode_columns(&body, records, columns, columns - 1).unwrap();
            for record in 0..records {
                let row = &words[record * columns..][..columns];
                prop_assert_eq!(&wider[record * (columns + 1)..][..columns], row);
                prop_assert_eq!(wider[record * (columns + 1) + columns], 0);
                prop_assert_eq!(&narrower[record * (columns - 1)..][..columns - 1], &row[..columns - 1]);
            }
        }
    }
}
