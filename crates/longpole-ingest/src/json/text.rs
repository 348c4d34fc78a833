//! Text from raw JSON strings and values.

use std::borrow::Cow;

/// The text of a raw string body (between its quotes), escapes resolved.
///
/// Damage is kept rather than refused: an escape that JSON does not know stays as written (Windows paths), bytes that are
/// not UTF-8 become replacement characters. The flag says whether bytes were replaced.
pub(crate) fn unescape(raw: &[u8]) -> (Cow<'_, str>, bool) {
    let (text, replaced) = match std::str::from_utf8(raw) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (String::from_utf8_lossy(raw), true),
    };
    if memchr::memchr(b'\\', text.as_bytes()).is_none() {
        return (text, replaced);
    }
    (Cow::Owned(resolve_escapes(&text)), replaced)
}

fn resolve_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let Some(escape) = after.chars().next() else {
            out.push('\\');
            return out;
        };
        let mut used = escape.len_utf8();
        match escape {
            '"' | '\\' | '/' => out.push(escape),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => match unicode_escape(after) {
                Some((character, length)) => {
                    out.push(character);
                    used = length;
                }
                None => out.push_str("\\u"),
            },
            _ => {
                out.push('\\');
                out.push(escape);
            }
        }
        rest = &after[used..];
    }
    out.push_str(rest);
    out
}

/// `u` and four hex digits, or a surrogate pair of two such escapes; a lone surrogate becomes a replacement character.
fn unicode_escape(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u32::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let high = unit(1)?;
    if (0xD800..0xDC00).contains(&high)
        && text.get(5..7) == Some("\\u")
        && let Some(low) = unit(7).filter(|low| (0xDC00..0xE000).contains(low))
    {
        let scalar = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        return Some((char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER), 11));
    }
    Some((char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 5))
}

/// A raw JSON value with its white space normalised (`[[1,2], []]` and a pretty-printed form become `[[1, 2], []]`), so that
/// equal shapes are equal text whatever the layout.
pub(crate) fn canonical(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in text.chars() {
        if in_string {
            out.push(character);
            match (escaped, character) {
                (true, _) => escaped = false,
                (false, '\\') => escaped = true,
                (false, '"') => in_string = false,
                _ => {}
            }
        } else {
            match character {
                ' ' | '\n' | '\r' | '\t' => {}
                ',' | ':' => {
                    out.push(character);
                    out.push(' ');
                }
                _ => {
                    in_string = character == '"';
                    out.push(character);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved_and_unknown_ones_kept() {
        assert_eq!(unescape(br"a\tb\u00e9\ud83d\ude00").0, "a\tb\u{e9}\u{1F600}");
        assert_eq!(unescape(br"C:\Windows\x").0, r"C:\Windows\x");
        assert_eq!(unescape(br"\ud800x\").0, "\u{FFFD}x\\");
        assert_eq!(unescape(b"plain").0, "plain");
        assert!(unescape(b"a\xff").1);
    }

    #[test]
    fn layout_does_not_change_a_shape() {
        assert_eq!(canonical(b"[[1,2],[ ]]"), "[[1, 2], []]");
        assert_eq!(canonical(b"[\n  [\n 1, 2 ], []\n]"), "[[1, 2], []]");
        assert_eq!(canonical(br#"["a b", "c"]"#), r#"["a b", "c"]"#);
    }
}
