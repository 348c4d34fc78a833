//! Names from a trace, made safe for the place they are printed in.
//!
//! A trace is other people's data: a kernel or range may be named with terminal escapes, right-to-left overrides, Markdown,
//! HTML or a spreadsheet formula. Nothing is removed; what would act is shown as what it is.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Characters that change how their neighbours are shown, or that are not shown at all.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` with control characters, terminal escapes, bidirectional marks and invisible characters written as escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unprintable(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// `text` for a cell or a line of GitHub Markdown: nothing in it is markup, HTML or a column border.
pub fn markdown_text(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '`' | '*' | '[' | ']' | '~' | '\\' | '$' => out.extend(['\\', c]),
            // Inside a word an underscore is text already.
            '_' if !(before.is_alphanumeric() && chars.peek().is_some_and(|next| next.is_alphanumeric())) => out.push_str("\\_"),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

/// `text` for a CSV cell: as text shows it, and a name that a spreadsheet would run as a formula gets a leading apostrophe.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = printable(text);
    if runs { Cow::Owned(format!("'{text}")) } else { text }
}

/// Columns that `text` takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The longest prefix of at most `columns` columns.
fn prefix(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// The longest suffix of at most `columns` columns.
fn suffix(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// `text` cut to `columns` columns with an ellipsis in its middle: the beginning says what it is, the end often which one.
pub fn ellipsis(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let kept = columns - 1;
    let tail = kept * 2 / 5;
    Cow::Owned(format!("{}…{}", prefix(text, kept - tail), suffix(text, tail)))
}

/// Words that say what the number before them counts.
const UNITS: [&str; 19] =
    ["%", "ms", "us", "ns", "s", "B", "KiB", "MiB", "GiB", "kB/s", "MB/s", "GB/s", "TB/s", "MHz", "GHz", "×", "times", "°C", "W"];

/// True when `word` is the unit of the number that `before` ends with, so that no line may end between the two.
fn belongs_to(before: &str, word: &str) -> bool {
    before.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&word.trim_end_matches([')', ',', ';', ':', '.']))
}

/// Breaks `text` at spaces into lines of at most `columns` columns; a word longer than a line stays whole, and so does a number
/// with its unit.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(before) if belongs_to(before, word) => {
                let before = before.to_mut();
                before.push(' ');
                before.push_str(word);
            }
            _ => words.push(Cow::Borrowed(word)),
        }
    }
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(&word);
        } else if width(&lines[last]) + 1 + width(&word) <= columns {
            lines[last].push(' ');
            lines[last].push_str(&word);
        } else {
            lines.push(word.into_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_and_bidi_marks_are_written_out() {
        assert_eq!(printable("a\x1b[31mb\nc\u{202e}d\u{9b}e\u{7f}"), "a\\u{1b}[31mb\\nc\\u{202e}d\\u{9b}e\\u{7f}");
        assert!(matches!(printable("aten::mm é 漢"), Cow::Borrowed(_)));
    }

    #[test]
    fn markdown_cannot_break_its_table() {
        assert_eq!(markdown_text("a|b`c`<img src=x>&*[x](y)\n\\|"), "a\\|b\\`c\\`&lt;img src=x&gt;&amp;\\*\\[x\\](y)\\\\n\\\\\\|");
        assert_eq!(markdown_text("aten::_to_copy __init__ a_b x_"), "aten::\\_to_copy \\_\\_init\\_\\_ a_b x\\_");
    }

    #[test]
    fn csv_formulas_are_text() {
        for name in ["=1+1", "+x", "-x", "@x"] {
            assert_eq!(csv_cell(name), format!("'{name}"));
        }
        assert_eq!(csv_cell("\t=x"), "'\\t=x");
        assert_eq!(csv_cell("aten::mm"), "aten::mm");
        assert_eq!(csv_cell("a\u{1b}[31m\u{7}\u{202e}"), "a\\u{1b}[31m\\u{7}\\u{202e}");
    }

    #[test]
    fn cuts_keep_head_and_tail_and_count_columns() {
        assert_eq!(ellipsis("abcdefghij", 10), "abcdefghij");
        assert_eq!(ellipsis("abcdefghijk", 6), "abc…jk");
        assert_eq!(ellipsis("abc", 1), "…");
        assert_eq!(ellipsis("abc", 0), "");
        for columns in 0..12 {
            assert!(width(&ellipsis("漢字漢字漢字漢字", columns)) <= columns, "{columns}");
        }
    }

    #[test]
    fn wrapping_breaks_at_spaces_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable x", 4), ["unbreakable", "x"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn numbers_stay_with_their_units() {
        assert_eq!(wrap("one 60 % of", 6), ["one", "60 %", "of"]);
        assert_eq!(wrap("it took (22.0 ms) of 3.50 GiB, all", 9), ["it took", "(22.0 ms)", "of", "3.50 GiB,", "all"]);
        assert_eq!(wrap("10.4 % × 2 devices", 8), ["10.4 % ×", "2", "devices"]);
        assert_eq!(wrap("a ms b", 3), ["a", "ms", "b"]);
        for text in ["wins at most 125.3 ms (59 % of wall)", "26.32 MiB uncompressed, 3 s, 7 B."] {
            for columns in 1..40 {
                let lines = wrap(text, columns);
                assert_eq!(lines.join(" "), text);
                assert!(lines.windows(2).all(|pair| !belongs_to(&pair[0], pair[1].split(' ').next().unwrap_or_default())), "{lines:?}");
            }
        }
    }
}
