//! A document of a command as compact JSON, with long lists and long texts cut, so that no input makes a page too large.
//!
//! The cutting is done as the JSON is written: the document is the command's own, and nothing has to know which lists it has.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use serde_json::value::RawValue;

/// How much of a document goes into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtmlLimits {
    /// Elements of a list.
    pub rows: usize,
    /// Characters of a text.
    pub chars: usize,
    /// Bytes of a document; when they are used up, lists end, but for their first 32 elements.
    pub bytes: usize,
}

/// Elements of a list that the size of a document does not cut.
const SHORT_LIST: u64 = 32;

/// Lists that were shortened: how many elements are kept, of how many. Lists of one name, in the rows of another list, are added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtmlCuts(pub(super) BTreeMap<String, (u64, u64)>);

impl HtmlCuts {
    /// Notes that of a list of something only a part is there.
    pub fn add(&mut self, list: &str, kept: u64, of: u64) {
        if kept < of {
            let known = self.0.entry(list.to_owned()).or_default();
            *known = (known.0 + kept, known.1 + of);
        }
    }

    /// The lists, with what is kept and of how many, by name.
    pub fn lists(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.0.iter().map(|(list, &(kept, of))| (list.as_str(), kept, of))
    }
}

/// Writes a document that is called `name`.
///
/// # Errors
/// When it is no JSON, which no document is.
pub fn html_document(
    name: &str,
    document: &impl Serialize,
    limits: &HtmlLimits,
    cuts: &mut HtmlCuts,
) -> Result<Box<RawValue>, serde_json::Error> {
    let mut out = Vec::new();
    let cutting = Cutting {
        limits,
        cuts,
        open: vec![Open::Object(name.to_owned())],
        written: 0,
        skipping: None,
        key: None,
        chars_left: 0,
        text_chars: 0,
    };
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut out, cutting))?;
    let text = String::from_utf8(out).map_err(|error| serde::ser::Error::custom(error.to_string()))?;
    RawValue::from_string(text)
}

/// What is being written.
enum Open {
    /// A list: elements so far, and those of them that are kept.
    Array(u64, u64),
    /// An object: the key of the value that is being written.
    Object(String),
}

struct Cutting<'a> {
    limits: &'a HtmlLimits,
    cuts: &'a mut HtmlCuts,
    open: Vec<Open>,
    written: usize,
    /// Nesting of the list of which an element is being left out.
    skipping: Option<usize>,
    /// The key that is being written.
    key: Option<String>,
    chars_left: usize,
    text_chars: u64,
}

/// The list under which texts that were cut are noted.
const LONG_TEXTS: &str = "characters of the longest text";

impl Cutting<'_> {
    /// Where the innermost open list is, e.g. `steps.groups[].rows`.
    fn path(&self) -> String {
        let mut path = String::new();
        let last = self.open.len() - 1;
        for (at, open) in self.open.iter().enumerate() {
            match open {
                Open::Array(..) if at < last => path.push_str("[]"),
                Open::Array(..) => {}
                Open::Object(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
            }
        }
        path
    }

    fn put<W: ?Sized + io::Write>(&mut self, writer: &mut W, bytes: &[u8]) -> io::Result<()> {
        if self.skipping.is_some() {
            return Ok(());
        }
        self.written += bytes.len();
        writer.write_all(bytes)
    }

    /// Takes characters from what a text may still have; how many of them are kept.
    fn take(&mut self, chars: usize) -> usize {
        let kept = chars.min(self.chars_left);
        self.chars_left -= kept;
        self.text_chars += chars as u64;
        kept
    }
}

macro_rules! like_compact {
    ($($method:ident($value:ident: $kind:ty);)*) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, writer: &mut W, $value: $kind) -> io::Result<()> {
            if self.skipping.is_some() {
                return Ok(());
            }
            // Of a number the longest has some twenty characters.
            self.written += 8;
            CompactFormatter.$method(writer, $value)
        }
    )*};
}

impl Formatter for Cutting<'_> {
    like_compact! {
        write_bool(value: bool);
        write_i8(value: i8);
        write_i16(value: i16);
        write_i32(value: i32);
        write_i64(value: i64);
        write_i128(value: i128);
        write_u8(value: u8);
        write_u16(value: u16);
        write_u32(value: u32);
        write_u64(value: u64);
        write_u128(value: u128);
        write_f32(value: f32);
        write_f64(value: f64);
        write_number_str(value: &str);
        write_raw_fragment(fragment: &str);
    }

    fn write_null<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.put(writer, b"null")
    }

    fn begin_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        (self.chars_left, self.text_chars) = (self.limits.chars, 0);
        self.put(writer, b"\"")
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let (most, chars) = (self.limits.chars as u64, self.text_chars);
        if chars > most && self.skipping.is_none() {
            self.put(writer, "…".as_bytes())?;
            let known = self.cuts.0.entry(LONG_TEXTS.to_owned()).or_default();
            *known = (most, known.1.max(chars));
        }
        self.put(writer, b"\"")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if let Some(key) = &mut self.key {
            key.push_str(fragment);
        }
        let chars = fragment.chars().count();
        let kept = self.take(chars);
        let end = if kept == chars { fragment.len() } else { fragment.char_indices().nth(kept).map_or(fragment.len(), |(at, _)| at) };
        self.put(writer, &fragment.as_bytes()[..end])
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        if self.take(1) == 0 || self.skipping.is_some() {
            return Ok(());
        }
        self.written += 2;
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Open::Array(0, 0));
        self.put(writer, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.skipping.is_none()
            && let Some(&Open::Array(all, kept)) = self.open.last()
        {
            let path = if kept < all { self.path() } else { String::new() };
            self.cuts.add(&path, kept, all);
        }
        self.open.pop();
        self.put(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        let (rows, is_full, depth) = (self.limits.rows as u64, self.written >= self.limits.bytes, self.open.len());
        // Short lists, of suspects say, are what a page is for: long ones before them do not take their room.
        let rows_when_full = rows.min(SHORT_LIST);
        if let Some(Open::Array(all, kept)) = self.open.last_mut() {
            *all += 1;
            if self.skipping.is_none() && (*kept >= rows || (is_full && *kept >= rows_when_full)) {
                self.skipping = Some(depth);
            } else {
                *kept += 1;
            }
        }
        if first { Ok(()) } else { self.put(writer, b",") }
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        if self.skipping == Some(self.open.len()) {
            self.skipping = None;
        }
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Open::Object(String::new()));
        self.put(writer, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.pop();
        self.put(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        // Nothing inside what is left out is named.
        self.key = self.skipping.is_none().then(String::new);
        if first { Ok(()) } else { self.put(writer, b",") }
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        if let (Some(Open::Object(known)), Some(key)) = (self.open.last_mut(), self.key.take()) {
            *known = key;
        }
        Ok(())
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.put(writer, b":")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cut(document: &Value, rows: usize, chars: usize, bytes: usize) -> (Value, Vec<(String, u64, u64)>) {
        let mut cuts = HtmlCuts::default();
        let text = html_document("x", document, &HtmlLimits { rows, chars, bytes }, &mut cuts).unwrap();
        let cuts = cuts.lists().map(|(list, kept, of)| (list.to_owned(), kept, of)).collect();
        (serde_json::from_str(text.get()).unwrap(), cuts)
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let document = json!({ "a": [1, -2, 2.5, null, true, "t\"\\\n\u{1b}é"], "b": { "c": [[], {}] }, "": "" });
        assert_eq!(cut(&document, 6, 10, 1 << 20), (document, Vec::new()));
    }

    #[test]
    fn long_lists_and_texts_are_cut_and_counted() {
        let document = json!({ "a": [1, 2, 3], "b": [{ "c": [1, 2, 3, 4] }, { "c": [5] }, { "c": [6, 7, 8] }], "d": "é\"é\"é", "e": 1 });
        let (short, cuts) = cut(&document, 2, 3, 1 << 20);
        assert_eq!(short, json!({ "a": [1, 2], "b": [{ "c": [1, 2] }, { "c": [5] }], "d": "é\"é…", "e": 1 }));
        let list = |name: &str, kept, of| (name.to_owned(), kept, of);
        assert_eq!(cuts, [list(LONG_TEXTS, 3, 5), list("x.a", 2, 3), list("x.b", 2, 3), list("x.b[].c", 2, 4)]);
    }

    #[test]
    fn a_large_document_ends_early_and_is_whole_json() {
        let row = json!({ "parents": vec!["some name"; 100], "name": "row" });
        let (short, cuts) = cut(&json!({ "rows": vec![row; 1000], "suspects": [1, 2, 3] }), 1 << 20, 100, 5_000);
        // What is short is whole, though a long list before it has used up the room.
        assert_eq!(short["suspects"], json!([1, 2, 3]));
        assert!(short["rows"].as_array().unwrap().len() <= 32 && short.to_string().len() < 20_000);
        assert!(cuts.iter().any(|(list, kept, of)| list == "x.rows" && *kept <= 32 && *of == 1000), "{cuts:?}");
    }
}
