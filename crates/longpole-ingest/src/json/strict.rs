//! A strict walk over one JSON value, for the few events that the fast reader is not sure of.

use super::cursor::Damage;

/// Containers nested deeper than this are damage, not data.
const MAX_DEPTH: usize = 512;

/// The end of the value that begins at `start`, or the first byte at which it is not JSON.
///
/// Names are not judged (any escape, any byte), since they hide nothing; a comma before a closing bracket is let pass.
pub(crate) fn value_end(bytes: &[u8], start: usize) -> Result<usize, Damage> {
    let mut at = start;
    // The closing bracket that each open container waits for.
    let mut open: Vec<u8> = Vec::new();
    // What may come next: a value, or a key, or what follows a value.
    let mut expect = Expect::Value;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let Some(&byte) = bytes.get(at) else { return Err(Damage::Incomplete) };
        if open.last() == Some(&byte) && expect != Expect::ValueOfKey {
            open.pop();
            at += 1;
            if open.is_empty() {
                return Ok(at);
            }
            expect = Expect::After;
            continue;
        }
        match (expect, byte) {
            (Expect::After, b',') => {
                at += 1;
                expect = if open.last() == Some(&b'}') { Expect::Key } else { Expect::Value };
            }
            (Expect::Key, b'"') => {
                at = string_end(bytes, at + 1)?;
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                match bytes.get(at) {
                    None => return Err(Damage::Incomplete),
                    Some(b':') => at += 1,
                    Some(_) => return Err(Damage::Malformed(at)),
                }
                expect = Expect::ValueOfKey;
            }
            (Expect::Value | Expect::ValueOfKey, b'{' | b'[') => {
                if open.len() == MAX_DEPTH {
                    return Err(Damage::Malformed(at));
                }
                open.push(if byte == b'{' { b'}' } else { b']' });
                expect = if byte == b'{' { Expect::Key } else { Expect::Value };
                at += 1;
            }
            (Expect::Value | Expect::ValueOfKey, b'"') => {
                at = string_end(bytes, at + 1)?;
                expect = Expect::After;
            }
            (Expect::Value | Expect::ValueOfKey, b'0'..=b'9' | b'-' | b'+' | b'.' | b'a'..=b'z' | b'A'..=b'Z') => {
                while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.')) {
                    at += 1;
                }
                expect = Expect::After;
            }
            _ => return Err(Damage::Malformed(at)),
        }
        if open.is_empty() {
            return Ok(at);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// An element of an array, or the outermost value.
    Value,
    /// The value after a colon.
    ValueOfKey,
    /// A member's key.
    Key,
    /// A comma or a closing bracket.
    After,
}

/// The offset behind the quote that closes the string whose body begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, Damage> {
    loop {
        let rest = bytes.get(at..).ok_or(Damage::Incomplete)?;
        at += memchr::memchr2(b'"', b'\\', rest).ok_or(Damage::Incomplete)?;
        if bytes[at] == b'"' {
            return Ok(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_values_end_where_they_end() {
        for text in ["{}", "[]", r#"{"a": [1, {"b": "}"}], "c": -1.5e3, "d": NaN}"#, r#"{"a": "x\"", "b": null,}"#, "12", r#""s""#] {
            let padded = format!("  {text} ,");
            assert_eq!(value_end(padded.as_bytes(), 2), Ok(2 + text.len()), "{text}");
        }
    }

    #[test]
    fn the_first_damage_is_named() {
        for (text, at) in [
            (r#"{"a": 1 "b": 2}"#, 8),
            (r#"{"a" 1}"#, 5),
            (r#"{"a": }"#, 6),
            (r#"{"a": 1, {"b": 2}}"#, 9),
            (r#"{"a": [1, 2}"#, 11),
            (r#"{"a": "x"y"}"#, 9),
        ] {
            assert_eq!(value_end(text.as_bytes(), 0), Err(Damage::Malformed(at)), "{text}");
        }
        for text in ["{", r#"{"a"#, r#"{"a": [1"#, r#"{"a": "x"#] {
            assert_eq!(value_end(text.as_bytes(), 0), Err(Damage::Incomplete), "{text}");
        }
        assert!(matches!(value_end("[".repeat(600).as_bytes(), 0), Err(Damage::Malformed(512))));
    }
}
