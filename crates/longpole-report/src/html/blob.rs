//! Numbers packed in bytes, and bytes as text that a page can hold.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::data::Stream;

/// Streams of numbers, one after the other.
#[derive(Debug, Default)]
pub(super) struct Blob {
    bytes: Vec<u8>,
}

impl Blob {
    /// Adds numbers as they are.
    pub(super) fn varint(&mut self, values: impl Iterator<Item = u64>) -> Stream {
        self.stream("varint", values)
    }

    /// Adds numbers that never fall, as differences; one that does counts as the one before.
    pub(super) fn delta(&mut self, values: impl Iterator<Item = u64>) -> Stream {
        let mut before = 0;
        self.stream(
            "delta",
            values.map(|value| {
                let step = value.saturating_sub(before);
                before = before.max(value);
                step
            }),
        )
    }

    /// Adds numbers unless all of them are zero.
    pub(super) fn unless_zero(&mut self, values: impl Iterator<Item = u64> + Clone) -> Option<Stream> {
        values.clone().any(|value| value != 0).then(|| self.varint(values))
    }

    fn stream(&mut self, form: &'static str, values: impl Iterator<Item = u64>) -> Stream {
        let at = self.bytes.len();
        let mut count = 0;
        for value in values {
            leb128(&mut self.bytes, value);
            count += 1;
        }
        Stream { at, bytes: self.bytes.len() - at, n: count, form }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Seven bits a byte, the low ones first; the high bit says that more follow.
fn leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Base64 of a zlib stream.
pub(super) fn packed(bytes: &[u8]) -> io::Result<String> {
    let mut zlib = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
    zlib.write_all(bytes)?;
    Ok(STANDARD.encode(zlib.finish()?))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;
    use proptest::prelude::*;

    use super::*;

    fn unpacked(stream: &Stream, bytes: &[u8]) -> Vec<u64> {
        let (mut values, mut value, mut shift, mut sum) = (Vec::new(), 0_u64, 0, 0);
        for byte in &bytes[stream.at..stream.at + stream.bytes] {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                sum = if stream.form == "delta" { sum + value } else { value };
                values.push(sum);
                (value, shift) = (0, 0);
            }
        }
        values
    }

    proptest! {
        #[test]
        fn numbers_come_back(plain in prop::collection::vec(any::<u64>(), 0..50), mut rising in prop::collection::vec(any::<u64>(), 0..50)) {
            rising.sort_unstable();
            let mut blob = Blob::default();
            let (a, b) = (blob.varint(plain.iter().copied()), blob.delta(rising.iter().copied()));
            prop_assert_eq!((a.n, b.n, a.bytes + b.bytes), (plain.len(), rising.len(), blob.bytes().len()));
            prop_assert_eq!(unpacked(&a, blob.bytes()), plain);
            prop_assert_eq!(unpacked(&b, blob.bytes()), rising);
        }

        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let text = packed(&bytes).unwrap();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
            let mut back = Vec::new();
            ZlibDecoder::new(STANDARD.decode(text).unwrap().as_slice()).read_to_end(&mut back).unwrap();
            prop_assert_eq!(back, bytes);
        }
    }

    #[test]
    fn what_falls_stays_and_zeros_take_no_room() {
        let mut blob = Blob::default();
        let stream = blob.delta([5, 3, 7].into_iter());
        assert_eq!(unpacked(&stream, blob.bytes()), [5, 5, 7]);
        assert!(blob.unless_zero([0, 0].into_iter()).is_none());
        assert_eq!(blob.unless_zero([0, 300].into_iter()).map(|stream| (stream.n, stream.bytes)), Some((2, 3)));
    }
}
