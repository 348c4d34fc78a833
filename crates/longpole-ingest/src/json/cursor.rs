//! Walking JSON by its structural positions.
//!
//! A [`Cursor`] yields keys and values of the object it stands in; values are spans of the input, decoded by the caller
//! when it wants them. What follows each value is checked (a comma or a closing bracket), and so is what follows each
//! string inside a skipped container: a stray quote shows within a few bytes, as [`Damage::Malformed`]. Running out of
//! bytes is told apart as [`Damage::Incomplete`], because the rest may be in the next segment.

use super::structural::Indexer;

/// Bytes indexed at a time: small enough that positions and text stay in the first-level cache.
const WINDOW: usize = 8 * 1024;
/// Position returned at the end of the input.
const END: u32 = u32::MAX;
/// Containers nested deeper than this are damage, not data.
const MAX_DEPTH: usize = 512;

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
    positions: Vec<u32>,
    at: usize,
    indexer: Indexer,
}

const WHITE: u8 = 1;
const ENDS_SCALAR: u8 = 2;
const AFTER_STRING: u8 = 4;

/// What each byte may do outside strings.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let white = [b' ', b'\n', b'\r', b'\t'];
    let mut i = 0;
    while i < white.len() {
        class[white[i] as usize] = WHITE | ENDS_SCALAR | AFTER_STRING;
        i += 1;
    }
    class[b',' as usize] = ENDS_SCALAR | AFTER_STRING;
    class[b'}' as usize] = ENDS_SCALAR | AFTER_STRING;
    class[b']' as usize] = ENDS_SCALAR | AFTER_STRING;
    class[b':' as usize] = AFTER_STRING;
    class
};

fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

impl<'a> Cursor<'a> {
    /// A cursor over nothing; [`Cursor::attach`] gives it bytes. `positions` is scratch space to reuse.
    pub(crate) fn new(bytes: &'a [u8], positions: Vec<u32>) -> Self {
        let mut cursor = Self { bytes, positions, at: 0, indexer: Indexer::new() };
        cursor.restart(0);
        cursor
    }

    /// The scratch space, for the next cursor.
    pub(crate) fn into_scratch(self) -> Vec<u32> {
        self.positions
    }

    /// Starts over at `offset`, which must lie outside any string.
    pub(crate) fn restart(&mut self, offset: usize) {
        self.indexer.restart(offset);
        self.positions.clear();
        self.at = 0;
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn next(&mut self) -> u32 {
        let position = self.peek();
        self.at += 1;
        position
    }

    /// The next structural position without taking it; `END` when there is none.
    #[inline]
    fn peek(&mut self) -> u32 {
        if let Some(&position) = self.positions.get(self.at) {
            return position;
        }
        self.refill()
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> u32 {
        loop {
            self.at = 0;
            if !self.indexer.fill(self.bytes, WINDOW, &mut self.positions) {
                return END;
            }
            if let Some(&position) = self.positions.first() {
                return position;
            }
        }
    }

    /// The next structural byte and its offset, without taking it.
    #[inline]
    pub(crate) fn peek_structural(&mut self) -> Option<(usize, u8)> {
        let position = self.peek() as usize;
        Some((position, *self.bytes.get(position)?))
    }

    /// Takes the next structural byte.
    #[inline]
    pub(crate) fn take_structural(&mut self) -> Option<(usize, u8)> {
        let found = self.peek_structural()?;
        self.at += 1;
        Some(found)
    }

    /// The next key of the object the cursor stands in, or `None` after its closing brace was taken.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Option<(&'a [u8], usize)>, Damage> {
        let open = self.next() as usize;
        match self.bytes.get(open) {
            None => Err(Damage::Incomplete),
            Some(b'"') => {
                let close = self.next() as usize;
                match self.bytes.get(open + 1..close) {
                    Some(key) if close < self.bytes.len() => Ok(Some((key, close + 1))),
                    _ => Err(Damage::Incomplete),
                }
            }
            Some(b'}') => Ok(None),
            Some(_) => Err(Damage::Malformed(open)),
        }
    }

    /// Offset of the first byte at or after `at` that is not white space.
    #[inline]
    fn skip_white(&self, mut at: usize) -> Result<(usize, u8), Damage> {
        loop {
            match self.bytes.get(at) {
                None => return Err(Damage::Incomplete),
                Some(&byte) if is(byte, WHITE) => at += 1,
                Some(&byte) => return Ok((at, byte)),
            }
        }
    }

    /// The value after a key that ended before `after_key`, and the check of what follows it.
    #[inline]
    pub(crate) fn value(&mut self, after_key: usize) -> Result<Value<'a>, Damage> {
        let (colon, byte) = self.skip_white(after_key)?;
        if byte != b':' {
            return Err(Damage::Malformed(colon));
        }
        let (start, byte) = self.skip_white(colon + 1)?;
        let (value, end) = self.value_at(start, byte)?;
        let (after, byte) = self.skip_white(end)?;
        if byte != b',' && byte != b'}' {
            return Err(Damage::Malformed(after));
        }
        Ok(value)
    }

    /// The value that begins at `start` with `byte`, and where it ends.
    #[inline]
    fn value_at(&mut self, start: usize, byte: u8) -> Result<(Value<'a>, usize), Damage> {
        match byte {
            b'"' => {
                let open = self.next() as usize;
                if open != start {
                    return Err(if open < self.bytes.len() { Damage::Malformed(start) } else { Damage::Incomplete });
                }
                let close = self.next() as usize;
                match self.bytes.get(start + 1..close) {
                    Some(raw) if close < self.bytes.len() => Ok((Value { kind: ValueKind::String, raw }, close + 1)),
                    _ => Err(Damage::Incomplete),
                }
            }
            b'{' | b'[' => {
                let open = self.next() as usize;
                if open != start {
                    return Err(Damage::Malformed(start));
                }
                let end = self.skip_container()?;
                let kind = if byte == b'{' { ValueKind::Object } else { ValueKind::Array };
                Ok((Value { kind, raw: &self.bytes[start..end] }, end))
            }
            b',' | b'}' | b']' | b':' => Err(Damage::Malformed(start)),
            _ => {
                let end = self.scalar_end(start)?;
                Ok((Value { kind: ValueKind::Scalar, raw: &self.bytes[start..end] }, end))
            }
        }
    }

    /// Where the unquoted value that begins at `start` ends. Eight bytes at a time: what ends one is a closing bracket, or
    /// lies below `-` in ASCII (white space, a comma; `+` and `"` do too, and are looked at again).
    #[inline]
    fn scalar_end(&self, start: usize) -> Result<usize, Damage> {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let mut at = start + 1;
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
            if is(self.bytes[at], ENDS_SCALAR) {
                return Ok(at);
            }
            break;
        }
        // The last bytes of the slice, and what ends no value.
        loop {
            match self.bytes.get(at) {
                None => return Err(Damage::Incomplete),
                Some(&byte) if is(byte, ENDS_SCALAR) => return Ok(at),
                Some(b'"' | b'{' | b'[') => return Err(Damage::Malformed(at)),
                Some(_) => at += 1,
            }
        }
    }

    /// Walks to the end of the container whose opening bracket was taken; returns the offset after its closing bracket.
    #[inline]
    fn skip_container(&mut self) -> Result<usize, Damage> {
        let mut depth = 1_usize;
        loop {
            let position = self.next() as usize;
            match self.bytes.get(position) {
                None => return Err(Damage::Incomplete),
                Some(b'"') => {
                    let close = self.next() as usize;
                    match self.bytes.get(close + 1) {
                        Some(&after) if is(after, AFTER_STRING) => {}
                        Some(_) => return Err(Damage::Malformed(close + 1)),
                        None => return Err(Damage::Incomplete),
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(Damage::Malformed(position));
                    }
                }
                Some(_) => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(position + 1);
                    }
                }
            }
        }
    }

    /// Walks to the end of the object the cursor stands in, wherever in it that is between two members.
    #[inline]
    pub(crate) fn skip_rest(&mut self) -> Result<usize, Damage> {
        self.skip_container()
    }

    /// Enters the object or array after a key that ended before `after_key`, if the value is one; otherwise reads the
    /// value as [`Cursor::value`] does. After entering, what follows the container's end is the caller's to check.
    #[inline]
    pub(crate) fn enter_or_value(&mut self, after_key: usize) -> Result<Entered<'a>, Damage> {
        let (colon, byte) = self.skip_white(after_key)?;
        if byte != b':' {
            return Err(Damage::Malformed(colon));
        }
        let (start, byte) = self.skip_white(colon + 1)?;
        if byte == b'{' || byte == b'[' {
            if self.next() as usize != start {
                return Err(Damage::Malformed(start));
            }
            return Ok(if byte == b'{' { Entered::Object } else { Entered::Array });
        }
        let (value, end) = self.value_at(start, byte)?;
        let (after, byte) = self.skip_white(end)?;
        if byte != b',' && byte != b'}' {
            return Err(Damage::Malformed(after));
        }
        Ok(Entered::Value(value))
    }
}

/// Where [`Cursor::enter_or_value`] ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered<'a> {
    /// Inside an object.
    Object,
    /// Inside an array.
    Array,
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
        while let Some((key, after)) = cursor.key()? {
            let value = cursor.value(after)?;
            let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
            out.push((text(key), value.kind, text(value.raw)));
        }
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
        assert_eq!(members(r#"{"a" 1}"#), Err(Damage::Malformed(5)));
        assert_eq!(members(r#"{"a": 1, "b": [1, 2"#), Err(Damage::Incomplete));
        assert_eq!(members(r#"{"a": "never closed"#), Err(Damage::Incomplete));
    }
}
