//! Walking JSON by its structural positions.
//!
//! A [`Cursor`] yields the keys of the object it stands in; the caller takes each value as a span, enters it, or skips it.
//! It is lenient (commas are not required) and still notices damage: keys must be strings followed by a colon, containers
//! must close, and the index reports the first string followed by something that cannot follow one. Running out of bytes
//! is told apart as [`Damage::Incomplete`], because the rest may be in the next segment.

use super::positions::{END, Positions};
use super::structural::Wanted;

/// Containers nested deeper than this are damage, not data.
const MAX_DEPTH: i32 = 512;

/// Why an object could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The bytes ended first.
    Incomplete,
    /// Not JSON at this offset of the slice.
    Malformed(usize),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// A string; the span is its body, without the quotes, escapes unresolved.
    String,
    /// A number, `true`, `false`, `null`, or something else without quotes.
    Scalar,
    /// An object, braces included.
    Object,
    /// An array, brackets included.
    Array,
}

/// A value of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    /// What it is.
    pub(crate) kind: ValueKind,
    /// Its bytes.
    pub(crate) raw: &'a [u8],
}

/// A place in a byte slice, and the structural positions from there on.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    positions: Positions<'a>,
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn ends_scalar(byte: u8) -> bool {
    is_white(byte) || matches!(byte, b',' | b'}' | b']')
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of `bytes` (under 4 GiB). `scratch` is space to reuse.
    pub(crate) fn new(bytes: &'a [u8], scratch: Vec<u32>) -> Self {
        Self { bytes, positions: Positions::new(bytes, 0, Wanted::QuotesAndBrackets, scratch) }
    }

    /// The scratch space, for the next cursor.
    pub(crate) fn into_scratch(self) -> Vec<u32> {
        self.positions.into_scratch()
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What an attempt to read an object that ended before `end` (or failed) really means: damage that the index saw on
    /// the way comes first, since it turned strings inside out.
    #[inline]
    pub(crate) fn verdict(&self, end: Result<usize, Damage>) -> Result<usize, Damage> {
        let bad = self.positions.first_bad();
        match end {
            Ok(end) if bad < end => Err(Damage::Malformed(bad)),
            Err(Damage::Incomplete) if bad < usize::MAX => Err(Damage::Malformed(bad)),
            Err(Damage::Malformed(at)) => Err(Damage::Malformed(at.min(bad))),
            _ => end,
        }
    }

    /// The next structural byte and its offset, without taking it.
    #[inline]
    pub(crate) fn peek_structural(&mut self) -> Option<(usize, u8)> {
        let position = self.positions.peek();
        Some((position, *self.bytes.get(position)?))
    }

    /// Takes the next structural byte.
    #[inline]
    pub(crate) fn take_structural(&mut self) -> Option<(usize, u8)> {
        let found = self.peek_structural()?;
        self.positions.next();
        Some(found)
    }

    /// The next key of the object the cursor stands in, with the offset behind its closing quote; or the offset behind the
    /// object's closing brace, which is then taken.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Key<'a>, Damage> {
        let open = self.positions.next();
        match self.bytes.get(open) {
            Some(b'"') => {
                let close = self.positions.next();
                match self.bytes.get(open + 1..close) {
                    Some(name) => Ok(Key::Member(name, close + 1)),
                    None => Err(Damage::Incomplete),
                }
            }
            Some(b'}') => Ok(Key::End(open + 1)),
            Some(_) => Err(Damage::Malformed(open)),
            None => Err(Damage::Incomplete),
        }
    }

    /// Where the value begins after a key that ended before `after_key`, and its first byte.
    #[inline]
    fn value_start(&self, after_key: usize) -> Result<(usize, u8), Damage> {
        // Nearly always a colon and a space, or a colon alone.
        if let Some(&[b':', space, first]) = self.bytes.get(after_key..).and_then(|rest| rest.first_chunk::<3>()) {
            if !is_white(space) {
                return Ok((after_key + 1, space));
            }
            if !is_white(first) {
                return Ok((after_key + 2, first));
            }
        }
        self.value_start_slow(after_key)
    }

    #[cold]
    fn value_start_slow(&self, after_key: usize) -> Result<(usize, u8), Damage> {
        let (colon, byte) = self.skip_white(after_key)?;
        if byte != b':' {
            return Err(Damage::Malformed(colon));
        }
        self.skip_white(colon + 1)
    }

    /// Offset of the first byte at or after `at` that is not white space.
    fn skip_white(&self, mut at: usize) -> Result<(usize, u8), Damage> {
        loop {
            match self.bytes.get(at) {
                None => return Err(Damage::Incomplete),
                Some(&byte) if is_white(byte) => at += 1,
                Some(&byte) => return Ok((at, byte)),
            }
        }
    }

    /// The value after a key that ended before `after_key`.
    #[inline]
    pub(crate) fn value(&mut self, after_key: usize) -> Result<Value<'a>, Damage> {
        let (start, byte) = self.value_start(after_key)?;
        match byte {
            b'"' => {
                let body = self.string_body()?;
                Ok(Value { kind: ValueKind::String, raw: body })
            }
            b'{' | b'[' => {
                self.positions.next();
                let end = self.skip_container()?;
                let kind = if byte == b'{' { ValueKind::Object } else { ValueKind::Array };
                Ok(Value { kind, raw: self.bytes.get(start..end).unwrap_or_default() })
            }
            _ => {
                let end = self.scalar_end(start)?;
                Ok(Value { kind: ValueKind::Scalar, raw: &self.bytes[start..end] })
            }
        }
    }

    /// Takes a string, whose opening quote is next.
    #[inline]
    fn string_body(&mut self) -> Result<&'a [u8], Damage> {
        let (open, close) = (self.positions.next(), self.positions.next());
        self.bytes.get(open.saturating_add(1)..close).ok_or(Damage::Incomplete)
    }

    /// Where the unquoted value that begins at `start` ends. Eight bytes at a time: what ends one is a closing bracket, or
    /// lies below `-` in ASCII (white space, a comma; `+` and `"` do too, and are looked at again).
    #[inline]
    fn scalar_end(&self, start: usize) -> Result<usize, Damage> {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let mut at = start;
        while let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_le_bytes(*word);
            // Bit 7 of each byte below 0x2D; then of each byte that is `]` or `}` once bit 5 is set. The tests may mark bytes
            // above the first true one wrongly, never below it.
            let below = word.wrapping_sub(LOW * 0x2D) & !word & HIGH;
            let bracket = (word | (LOW * 0x20)) ^ (LOW * 0x7D);
            let bracket = bracket.wrapping_sub(LOW) & !bracket & HIGH;
            let found = below | bracket;
            if found == 0 {
                at += 8;
                continue;
            }
            at += found.trailing_zeros() as usize / 8;
            if ends_scalar(self.bytes[at]) && at > start {
                return Ok(at);
            }
            break;
        }
        self.scalar_end_slow(start, at)
    }

    /// The last bytes of the slice, and what ends no value.
    #[cold]
    fn scalar_end_slow(&self, start: usize, mut at: usize) -> Result<usize, Damage> {
        loop {
            match self.bytes.get(at) {
                None => return Err(Damage::Incomplete),
                Some(&byte) if ends_scalar(byte) => return if at > start { Ok(at) } else { Err(Damage::Malformed(at)) },
                Some(b'"' | b'{' | b'[' | b':') => return Err(Damage::Malformed(at)),
                Some(_) => at += 1,
            }
        }
    }

    /// Walks to the end of the container whose opening bracket was taken; returns the offset behind its closing bracket.
    #[inline]
    fn skip_container(&mut self) -> Result<usize, Damage> {
        let mut depth = 1_i32;
        loop {
            let position = self.positions.next();
            if position == END {
                return Err(Damage::Incomplete);
            }
            // Quotes change nothing: brackets inside strings are not in the index.
            match self.bytes[position] {
                b'{' | b'[' if depth == MAX_DEPTH => return Err(Damage::Malformed(position)),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(position + 1);
            }
        }
    }

    /// Walks to the end of the object the cursor stands in; returns the offset behind its closing brace.
    #[inline]
    pub(crate) fn skip_rest(&mut self) -> Result<usize, Damage> {
        self.skip_container()
    }

    /// Enters the object or array after a key that ended before `after_key`, if the value is one; otherwise reads the
    /// value as [`Cursor::value`] does.
    #[inline]
    pub(crate) fn enter_or_value(&mut self, after_key: usize) -> Result<Entered<'a>, Damage> {
        let (start, byte) = self.value_start(after_key)?;
        if byte == b'{' || byte == b'[' {
            self.positions.next();
            return Ok(if byte == b'{' { Entered::Object } else { Entered::Array(start + 1) });
        }
        self.value(after_key).map(Entered::Value)
    }
}

/// What [`Cursor::key`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    /// A member: its raw name, and the offset behind its closing quote.
    Member(&'a [u8], usize),
    /// The end of the object: the offset behind its closing brace.
    End(usize),
}

/// Where [`Cursor::enter_or_value`] ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered<'a> {
    /// Inside an object.
    Object,
    /// Inside an array, from this offset on.
    Array(usize),
    /// Past a value that is neither.
    Value(Value<'a>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<Vec<(String, ValueKind, String)>, Damage> {
        let mut cursor = Cursor::new(text.as_bytes(), Vec::new());
        cursor.take_structural();
        let mut out = Vec::new();
        let mut walk = || loop {
            let (key, after) = match cursor.key()? {
                Key::Member(key, after) => (key, after),
                Key::End(end) => return Ok(end),
            };
            let value = cursor.value(after)?;
            let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
            out.push((text(key), value.kind, text(value.raw)));
        };
        let end = walk();
        cursor.verdict(end)?;
        Ok(out)
    }

    #[test]
    fn members_come_out_as_spans() {
        let found = members(r#"{ "a" : 1.5,"b":"x\"y", "c": [1,{"d":"]"}] , "e":{} }"#).unwrap();
        let kinds: Vec<_> = found.iter().map(|(k, kind, raw)| (k.as_str(), *kind, raw.as_str())).collect();
        assert_eq!(
            kinds,
            [
                ("a", ValueKind::Scalar, "1.5"),
                ("b", ValueKind::String, r#"x\"y"#),
                ("c", ValueKind::Array, r#"[1,{"d":"]"}]"#),
                ("e", ValueKind::Object, "{}"),
            ]
        );
    }

    #[test]
    fn damage_is_found_close_to_its_cause() {
        assert_eq!(members(r#"{"name": "a "b" c", "pid": 1}"#), Err(Damage::Malformed(13)));
        assert_eq!(members(r#"{"x": ["a "b" c", "d"], "pid": 1}"#), Err(Damage::Malformed(11)));
        assert_eq!(members(r#"{"x": ["a"b", "d"], "pid": 1}"#), Err(Damage::Malformed(10)));
        assert_eq!(members(r#"{"a" 1}"#), Err(Damage::Malformed(5)));
        assert_eq!(members(r#"{"a": , "b": 1}"#), Err(Damage::Malformed(6)));
        assert_eq!(members(r#"{"a": 1, "b": [1, 2"#), Err(Damage::Incomplete));
        assert_eq!(members(r#"{"a": "never closed"#), Err(Damage::Incomplete));
        assert_eq!(members(r#"{"a": "#), Err(Damage::Incomplete));
        assert_eq!(members(&format!("{{\"a\": {}", "[".repeat(20_000))), Err(Damage::Malformed(518)));
    }
}
