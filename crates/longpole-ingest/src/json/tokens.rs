//! Events at speed: only colons and braces outside strings are indexed, so a list of strings or numbers that nobody reads
//! costs nothing beyond its bytes, and a key is recognised by the bytes before its colon.
//!
//! [`Tokens`] hands out those positions and reads values in place. It trusts its input to be JSON as far as it can be
//! wrong without harm; what is no JSON or could hide other events (a stray quote, a missing brace) is noticed by
//! [`Tokens::first_odd`] and by the caller's look at what stands before each brace, and then settled by [`super::strict`].

use super::digits::{digits, ends_number};
use super::number::{Decimal, parse_decimal_ns, parse_i64, parse_u64};
use super::positions::Positions;
use super::structural::Wanted;

/// The positions of colons and braces outside strings, from some place on.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    positions: Positions<'a>,
}

impl<'a> Tokens<'a> {
    /// Tokens of `bytes` (under 4 GiB) from `offset` on, which must lie outside any string. `scratch` is space to reuse.
    pub(crate) fn new(bytes: &'a [u8], offset: usize, scratch: Vec<u32>) -> Self {
        Self { bytes, positions: Positions::new(bytes, offset, Wanted::ColonsAndBraces, scratch) }
    }

    /// The scratch space, for the next one.
    pub(crate) fn into_scratch(self) -> Vec<u32> {
        self.positions.into_scratch()
    }

    /// Starts over at `offset`, which must lie outside any string.
    pub(crate) fn restart(&mut self, offset: usize) {
        self.positions.restart(offset);
    }

    /// The next tokens, if they are indexed already, without taking them.
    #[inline]
    pub(crate) fn upcoming<const N: usize>(&self) -> Option<[usize; N]> {
        self.positions.upcoming().map(|positions: &[u32; N]| positions.map(|position| position as usize))
    }

    /// Takes tokens that [`Tokens::upcoming`] told.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        self.positions.take(count);
    }

    /// Whether a colon with this key before stands at `colon`; `key` is the key in its quotes, at most six bytes, and the colon.
    #[inline]
    pub(crate) fn is_key_and_colon<const N: usize>(&self, colon: usize, key: &[u8; N]) -> bool {
        const { assert!(N < 8, "a word holds the key and the byte before") };
        let Some(word) = self.bytes.get(colon.wrapping_sub(7)..=colon).and_then(|word| word.first_chunk::<8>()) else { return false };
        // Behind a backslash, the quote is part of a longer key.
        word[8 - N..] == key[..] && word[7 - N] != b'\\'
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Offset of the first byte seen so far that is odd where it stands; `usize::MAX` while there is none.
    #[inline]
    pub(crate) fn first_odd(&self) -> usize {
        self.positions.first_bad()
    }

    /// Takes the next token's position; `END` when there is none.
    #[inline]
    pub(crate) fn next(&mut self) -> usize {
        self.positions.next()
    }

    /// The next token's position without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> usize {
        self.positions.peek()
    }

    /// The last byte before `at` that is not white space; 0 when there is none.
    #[inline]
    pub(crate) fn black_before(&self, at: usize) -> u8 {
        self.bytes.get(..at).and_then(|before| before.iter().rev().find(|byte| !byte.is_ascii_whitespace())).copied().unwrap_or(0)
    }

    /// The first byte at or after `at` that is not white space, and its offset.
    #[inline]
    pub(crate) fn black_after(&self, at: usize) -> Option<(usize, u8)> {
        let rest = self.bytes.get(at..)?;
        let skipped = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        Some((at + skipped, rest[skipped]))
    }

    /// The eight bytes before `end`, the last one highest: the end of a key, closing quote included. Too near the beginning
    /// there are zeros.
    #[inline]
    fn tail(&self, end: usize) -> u64 {
        match self.bytes.get(end.wrapping_sub(8)..end).and_then(|tail| tail.first_chunk::<8>()) {
            Some(tail) => u64::from_le_bytes(*tail),
            None => self.first_tail(end),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_tail(&self, end: usize) -> u64 {
        self.bytes.get(..end).unwrap_or_default().iter().fold(0, |tail, byte| (tail >> 8) | (u64::from(*byte) << 56))
    }

    /// Whether the bytes before `end` are `key`, quotes included.
    #[inline]
    pub(crate) fn is_key<const N: usize>(&self, end: usize, key: &[u8; N]) -> bool {
        let start = end.wrapping_sub(N);
        self.bytes.get(start..end).and_then(|text| text.first_chunk::<N>()) == Some(key)
            && self.bytes.get(start.wrapping_sub(1)) != Some(&b'\\')
    }

    /// The key before `colon`, if there is one: the offset behind its closing quote (the colon itself, but for white space), and the
    /// eight bytes before.
    #[inline]
    pub(crate) fn key(&self, colon: usize) -> Option<(usize, u64)> {
        let tail = self.tail(colon);
        if tail >> 56 == u64::from(b'"') {
            return Some((colon, tail));
        }
        self.far_key(colon)
    }

    #[cold]
    #[inline(never)]
    fn far_key(&self, colon: usize) -> Option<(usize, u64)> {
        let before = self.bytes.get(..colon)?.trim_ascii_end();
        before.ends_with(b"\"").then(|| (before.len(), self.tail(before.len())))
    }

    /// Where the value after `colon` begins.
    #[inline]
    fn value_start(&self, colon: usize) -> usize {
        // Nearly always right behind the colon or one space further.
        let start = colon + 1 + usize::from(self.bytes.get(colon + 1) == Some(&b' '));
        if self.bytes.get(start).is_some_and(|byte| *byte > b' ') { start } else { self.far_value_start(start) }
    }

    #[cold]
    #[inline(never)]
    fn far_value_start(&self, from: usize) -> usize {
        self.bytes.get(from..).map_or(from, |rest| self.bytes.len() - rest.trim_ascii_start().len())
    }

    /// A value that is a string: its body, escapes unresolved.
    #[inline]
    pub(crate) fn string(&self, colon: usize) -> Option<&'a [u8]> {
        let start = self.value_start(colon);
        if self.bytes.get(start) != Some(&b'"') {
            return None;
        }
        let end = string_end(self.bytes, start + 1)?;
        Some(&self.bytes[start + 1..end])
    }

    /// A value that is the string with this body, escapes unresolved.
    #[inline]
    pub(crate) fn is_string(&self, colon: usize, body: &[u8]) -> Option<&'a [u8]> {
        let start = self.value_start(colon) + 1;
        let found = self.bytes.get(start..start + body.len())?;
        (self.bytes.get(start - 1) == Some(&b'"') && self.bytes.get(start + body.len()) == Some(&b'"') && found == body).then_some(found)
    }

    /// A value that is this array, which is whole.
    #[inline]
    pub(crate) fn is_array(&self, colon: usize, array: &[u8]) -> Option<&'a [u8]> {
        let start = self.value_start(colon);
        self.bytes.get(start..start + array.len()).filter(|found| *found == array)
    }

    /// The first byte of a value that is a string; 0 otherwise.
    #[inline]
    pub(crate) fn first_of_string(&self, colon: usize) -> u8 {
        match self.bytes.get(self.value_start(colon)..) {
            Some([b'"', first, ..]) => *first,
            _ => 0,
        }
    }

    /// The first eight bytes of a value that is a string, and of what follows it if it is shorter; 0 at the end of the input.
    #[inline]
    pub(crate) fn first_word_of_string(&self, colon: usize) -> u64 {
        let start = self.value_start(colon) + 1;
        self.bytes.get(start..start + 8).and_then(|word| word.first_chunk::<8>()).map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// A value that is a string or a number, as text.
    #[inline]
    pub(crate) fn text(&self, colon: usize) -> Option<&'a [u8]> {
        self.string(colon).or_else(|| self.scalar(colon))
    }

    /// An unquoted value's bytes.
    fn scalar(&self, colon: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.value_start(colon)..)?;
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
        Some(rest[..length].trim_ascii_end()).filter(|raw| !raw.is_empty() && !matches!(raw[0], b'{' | b'['))
    }

    /// A value that is an array without objects in it: its bytes, brackets included. The next token lies behind it.
    #[inline]
    pub(crate) fn array(&mut self, colon: usize) -> Option<&'a [u8]> {
        let start = self.value_start(colon);
        if self.bytes.get(start) != Some(&b'[') {
            return None;
        }
        let next = self.peek();
        let mut end = match self.bytes.get(next)? {
            b'}' => next,
            // A colon: the array ends before the next key, which ends before the colon.
            b':' => {
                let close = start + memchr::memrchr(b'"', self.bytes.get(start..next)?)?;
                start + memchr::memrchr(b'"', &self.bytes[start..close])?
            }
            _ => return None,
        };
        while end > start && (self.bytes[end - 1].is_ascii_whitespace() || self.bytes[end - 1] == b',') {
            end -= 1;
        }
        Some(&self.bytes[start..end]).filter(|raw| raw.ends_with(b"]"))
    }

    /// A value of any kind, walked strictly; the tokens inside it are taken.
    pub(crate) fn value(&mut self, colon: usize) -> Option<&'a [u8]> {
        let start = self.value_start(colon);
        let end = super::strict::value_end(self.bytes, start).ok()?;
        while self.peek() < end {
            self.next();
        }
        self.bytes.get(start..end)
    }

    /// A value that is an unsigned integer, quoted or not.
    #[inline]
    pub(crate) fn u64(&self, colon: usize) -> Option<u64> {
        let start = self.value_start(colon);
        match digits(self.bytes, start) {
            Some((value, end)) if ends_number(self.bytes, end) => Some(value),
            _ => parse_u64(self.text(colon)?),
        }
    }

    /// A value that is a 32-bit unsigned integer.
    #[inline]
    pub(crate) fn u32(&self, colon: usize) -> Option<u32> {
        self.u64(colon).and_then(|value| u32::try_from(value).ok())
    }

    /// A value that is a signed integer, quoted or not.
    #[inline]
    pub(crate) fn i64(&self, colon: usize) -> Option<i64> {
        let start = self.value_start(colon);
        let negative = self.bytes.get(start) == Some(&b'-');
        match digits(self.bytes, start + usize::from(negative)) {
            // At most 16 digits, which fit.
            Some((value, end)) if ends_number(self.bytes, end) => Some(if negative { -(value as i64) } else { value as i64 }),
            _ => parse_i64(self.text(colon)?),
        }
    }

    /// The same, with the last such value remembered: processes and threads are mostly those of the event before.
    #[inline]
    pub(crate) fn repeated_i64(&self, colon: usize, last: &mut Repeated) -> Option<i64> {
        let start = self.value_start(colon);
        let Some(word) = self.bytes.get(start..start + 8).and_then(|rest| rest.first_chunk::<8>()) else { return self.i64(colon) };
        if *word != last.word {
            let value = self.i64(colon);
            // Up to seven digits, and what ends them: nothing else bears on the value.
            let length = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if length == 0 || !matches!(word.get(length), Some(b',' | b'}')) {
                return value;
            }
            *last = Repeated { word: *word, value };
        }
        last.value
    }

    /// A value that is decimal microseconds, quoted or not, in nanoseconds.
    #[inline]
    pub(crate) fn nanoseconds(&self, colon: usize) -> Decimal {
        let start = self.value_start(colon);
        // Up to 15 digits fit with their decimals; nearly all times have three decimals or none.
        if let Some((whole, end)) = digits(self.bytes, start)
            && end - start <= 15
        {
            match self.bytes.get(end..) {
                Some([b'.', a, b, c, after, ..]) if !after.is_ascii_digit() => {
                    let [a, b, c] = [a, b, c].map(|byte| u64::from(byte.wrapping_sub(b'0')));
                    if a < 10 && b < 10 && c < 10 && ends_number(self.bytes, end + 4) {
                        return Decimal::Ns((whole * 1_000 + a * 100 + b * 10 + c) as i64);
                    }
                }
                Some(_) if ends_number(self.bytes, end) => return Decimal::Ns((whole * 1_000) as i64),
                _ => {}
            }
        }
        self.text(colon).map_or(Decimal::Invalid, parse_decimal_ns)
    }

    /// A value `[x, y, z]` of small numbers.
    #[inline]
    pub(crate) fn triple(&self, colon: usize) -> Option<[u32; 3]> {
        let mut at = self.value_start(colon);
        let mut triple = [0; 3];
        for (index, number) in triple.iter_mut().enumerate() {
            if self.bytes.get(at) != Some(if index == 0 { &b'[' } else { &b',' }) {
                return None;
            }
            at = self.black_after(at + 1)?.0;
            let (value, end) = digits(self.bytes, at)?;
            *number = u32::try_from(value).ok()?;
            at = self.black_after(end)?.0;
        }
        (self.bytes.get(at) == Some(&b']')).then_some(triple)
    }
}

/// The last value of some member: its first bytes, and what they mean.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeated {
    word: [u8; 8],
    value: Option<i64>,
}

/// Offset of the quote that closes the string whose body begins at `start`.
#[inline]
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = start;
    // Most names are short. The test for a zero byte may mark bytes above the first true one wrongly, never below it.
    for _ in 0..4 {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        let word = u64::from_le_bytes(*word);
        let (quote, backslash) = (word ^ (LOW * 0x22), word ^ (LOW * 0x5C));
        let found = (quote.wrapping_sub(LOW) & !quote | backslash.wrapping_sub(LOW) & !backslash) & HIGH;
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            if bytes[at] == b'"' {
                return Some(at);
            }
            break;
        }
        at += 8;
    }
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> (String, usize) {
        let text = format!("{{\"key\": {text}, \"next\": 1}}");
        let colon = text.find(':').unwrap();
        (text, colon)
    }

    #[test]
    fn numbers_are_read_in_place() {
        for (text, want) in [("7", 7), ("12345678", 12_345_678), ("123456789", 123_456_789), ("1234567890123456", 1_234_567_890_123_456)] {
            let (json, colon) = value(text);
            let tokens = Tokens::new(json.as_bytes(), 0, Vec::new());
            assert_eq!((tokens.u64(colon), tokens.i64(colon)), (Some(want), Some(want as i64)), "{text}");
            assert_eq!(tokens.nanoseconds(colon), Decimal::Ns(want as i64 * 1_000), "{text}");
        }
        let read = |text: &str| {
            let (json, colon) = value(text);
            let tokens = Tokens::new(json.as_bytes(), 0, Vec::new());
            (tokens.u64(colon), tokens.i64(colon), tokens.nanoseconds(colon))
        };
        assert_eq!(read("10159970886766084423").0, Some(10_159_970_886_766_084_423));
        assert_eq!(read("-512"), (None, Some(-512), Decimal::Ns(-512_000)));
        assert_eq!(read("\"25738\""), (Some(25_738), Some(25_738), Decimal::Ns(25_738_000)));
        assert_eq!(read("5107982190005.803").2, Decimal::Ns(5_107_982_190_005_803));
        assert_eq!(read("1712195495521716.781").2, Decimal::Ns(1_712_195_495_521_716_781));
        assert_eq!(read("1.5").2, Decimal::Ns(1_500));
        assert_eq!(read("1.23456").2, Decimal::Ns(1_235));
        assert_eq!(read("1e3").2, Decimal::Ns(1_000_000));
        assert_eq!(read("NaN"), (None, None, Decimal::NotFinite));
        assert_eq!(read("[1]"), (None, None, Decimal::Invalid));
        assert_eq!(read("12a").0, None);
    }

    #[test]
    fn strings_and_arrays_are_spans() {
        let read = |text: &str| {
            let (json, colon) = value(text);
            let mut tokens = Tokens::new(json.as_bytes(), colon + 1, Vec::new());
            let own = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
            (own(tokens.string(colon)), own(tokens.array(colon)))
        };
        for name in ["", "aten::mm", r#"a \"quoted\" name"#, r"ends with \\", &"x".repeat(700)] {
            assert_eq!(read(&format!("\"{name}\"")).0.as_deref(), Some(name));
        }
        for array in ["[]", "[[1, 2], []]", r#"["a: b", "]"]"#] {
            assert_eq!(read(array).1.as_deref(), Some(array));
        }
        assert_eq!(read("[{\"a\": 1}]").1, None);
        assert_eq!(read("3"), (None, None));
    }

    #[test]
    fn launch_shapes_are_triples() {
        let read = |text: &str| {
            let (json, colon) = value(text);
            Tokens::new(json.as_bytes(), 0, Vec::new()).triple(colon)
        };
        assert_eq!(read("[14, 1,\n 1]"), Some([14, 1, 1]));
        for bad in ["[1, 2]", "[1, 2, 3, 4]", "[1, 2, x]", "[4294967296, 1, 1]", "7"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
