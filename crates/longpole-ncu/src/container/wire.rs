//! A borrowed walk over the fields of one protobuf message: nothing is copied, and what is not asked for is skipped.
//!
//! Most messages are decoded by `prost` into the structs of [`messages`](super::messages). A kernel's result is not: it is
//! mostly metrics and section layouts of which a view wants a handful, so its fields are looked at in place.

use prost::encoding::{WireType, decode_key, decode_varint};

/// The value of a field as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    /// An integer, a flag or an enumeration.
    Varint(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Eight bytes.
    Fixed64(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

impl Field<'_> {
    /// The integer, if it is one.
    pub(crate) const fn varint(self) -> Option<u64> {
        match self {
            Self::Varint(value) => Some(value),
            _ => None,
        }
    }
}

/// The bytes do not form a message from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The fields of a message, in the order they are written. Ends after the first malformed one.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Walks a message.
    pub(crate) const fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u32, Field<'a>), Malformed> {
        let (number, kind) = decode_key(&mut self.rest).map_err(|_| Malformed)?;
        let value = match kind {
            WireType::Varint => Field::Varint(decode_varint(&mut self.rest).map_err(|_| Malformed)?),
            WireType::SixtyFourBit => Field::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?)),
            WireType::ThirtyTwoBit => Field::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| Malformed)?)),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.rest).map_err(|_| Malformed)?;
                Field::Bytes(self.take(usize::try_from(length).map_err(|_| Malformed)?)?)
            }
            // Groups were given up by protobuf before these reports existed.
            WireType::StartGroup | WireType::EndGroup => return Err(Malformed),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order() {
        // Field 1 = 150, field 2 = "hi", field 3 = 1.0f32, field 4 = 1.0f64.
        let message = [8, 150, 1, 18, 2, b'h', b'i', 29, 0, 0, 128, 63, 33, 0, 0, 0, 0, 0, 0, 240, 63];
        let fields: Vec<_> = Fields::of(&message).map(Result::unwrap).collect();
        assert_eq!(
            fields,
            [
                (1, Field::Varint(150)),
                (2, Field::Bytes(b"hi")),
                (3, Field::Fixed32(1.0f32.to_bits())),
                (4, Field::Fixed64(1.0f64.to_bits())),
            ]
        );
    }

    #[test]
    fn a_message_that_ends_early_says_so_once() {
        let fields: Vec<_> = Fields::of(&[8, 1, 18, 200, b'x']).collect();
        assert_eq!(fields, [Ok((1, Field::Varint(1))), Err(Malformed)]);
    }
}
