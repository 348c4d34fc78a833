//! JSON that is harmless to look at and to embed: what would act on a terminal or end a script element is written as an
//! escape. A parser reads the same text either way.

use std::io;

use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

use crate::names::is_unprintable;

/// Indented JSON with more escapes than the standard asks for.
pub(super) struct Harmless(PrettyFormatter<'static>);

impl Harmless {
    pub(super) fn new() -> Self {
        Self(PrettyFormatter::new())
    }
}

/// True when a `<` before `rest` could open, close or comment out something in a page that the JSON is pasted into.
fn opens_markup(rest: &str) -> bool {
    rest.starts_with(['/', '!']) || rest.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("script"))
}

macro_rules! like_pretty {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.0.$method(writer $(, $argument)*)
        }
    )*};
}

impl Formatter for Harmless {
    like_pretty! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
        write_char_escape(escape: CharEscape);
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'<') {
            return writer.write_all(fragment.as_bytes());
        }
        let mut written = 0;
        for (at, c) in fragment.char_indices() {
            let after = at + c.len_utf8();
            if is_unprintable(c) || (c == '<' && opens_markup(&fragment[after..])) {
                writer.write_all(&fragment.as_bytes()[written..at])?;
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
                written = after;
            }
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize as _;

    use super::*;

    fn write(text: &str) -> String {
        let mut out = Vec::new();
        [text].serialize(&mut serde_json::Serializer::with_formatter(&mut out, Harmless::new())).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_would_act_is_escaped_and_reads_the_same() {
        for (text, written) in [
            ("aten::mm<float, 4> é 漢", "aten::mm<float, 4> é 漢"),
            ("\u{202e}x\u{7f}\u{9b}31m\u{1b}[0m", "\\u202ex\\u007f\\u009b31m\\u001b[0m"),
            ("\u{e0041}\u{feff}", "\\udb40\\udc41\\ufeff"),
            ("<script>a</script><!-- <ScRiPt <scrip", "\\u003cscript>a\\u003c/script>\\u003c!-- \\u003cScRiPt <scrip"),
            ("a\"b\\c\n", "a\\\"b\\\\c\\n"),
        ] {
            let json = write(text);
            assert_eq!(json, format!("[\n  \"{written}\"\n]"));
            assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [text]);
        }
    }
}
