//! Writes one trace event after another in a chosen layout.
//!
//! An event is collected first (top-level fields and argument fields, values already rendered) and laid out when it ends, so that the
//! model never knows how a file is spelled and a layout may order the fields as it likes.

use std::io::{self, Write};

use super::rng::Rng;

/// How a file is spelled. The content is the same in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Layout {
    /// Several fields a line, as released PyTorch writes them.
    Classic,
    /// One field a line, as newer Kineto writes them.
    Head,
    /// No whitespace at all.
    Minified,
    /// Fields and arguments of each event in a random order.
    Shuffled,
}

/// What stands between a field and the one before it, in the classic layout.
#[derive(Clone, Copy)]
pub(crate) enum Gap {
    Space,
    Line,
    /// A comma with nothing after it.
    Tight,
    /// A comma and six spaces, which Kineto leaves where it joins pieces of text.
    Wide,
}

#[derive(Clone, Copy)]
struct Field {
    key: &'static str,
    gap: Gap,
    start: usize,
    end: usize,
}

/// Output is handed on in pieces of this size.
const FLUSH_BYTES: usize = 1 << 20;

pub(crate) struct EventWriter<'a> {
    sink: &'a mut dyn Write,
    layout: Layout,
    buffer: Vec<u8>,
    fields: Vec<Field>,
    args: Vec<Field>,
    /// Rendered values of the event being collected.
    text: Vec<u8>,
    in_args: bool,
    shuffle: Rng,
    /// Bytes handed on so far, without those still in the buffer.
    flushed: u64,
    events: u64,
    error: Option<io::Error>,
}

impl<'a> EventWriter<'a> {
    pub(crate) fn new(sink: &'a mut dyn Write, layout: Layout, seed: u64) -> Self {
        Self {
            sink,
            layout,
            buffer: Vec::with_capacity(FLUSH_BYTES + (1 << 16)),
            fields: Vec::new(),
            args: Vec::new(),
            text: Vec::new(),
            in_args: false,
            shuffle: Rng::new(seed ^ 0x5EED_0F0F),
            flushed: 0,
            events: 0,
            error: None,
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Bytes written so far, once [`Self::finish`] was called.
    pub(crate) fn bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Text outside any event: the envelope. Written as it is.
    pub(crate) fn raw(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    /// Fields after this call are arguments.
    pub(crate) fn args(&mut self) {
        self.in_args = true;
    }

    fn push(&mut self, key: &'static str, gap: Gap, start: usize) {
        let field = Field { key, gap, start, end: self.text.len() };
        if self.in_args { self.args.push(field) } else { self.fields.push(field) }
    }

    pub(crate) fn text(&mut self, key: &'static str, gap: Gap, value: &[u8]) {
        let start = self.text.len();
        self.text.push(b'"');
        self.text.extend_from_slice(value);
        self.text.push(b'"');
        self.push(key, gap, start);
    }

    /// A value that is JSON already.
    pub(crate) fn json(&mut self, key: &'static str, gap: Gap, value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(value);
        self.push(key, gap, start);
    }

    pub(crate) fn int(&mut self, key: &'static str, gap: Gap, value: i64) {
        let start = self.text.len();
        push_int(&mut self.text, value);
        self.push(key, gap, start);
    }

    /// Nanoseconds as microseconds with three decimals, Kineto's unit.
    pub(crate) fn micros(&mut self, key: &'static str, gap: Gap, ns: i64) {
        let start = self.text.len();
        push_fixed(&mut self.text, ns, 3);
        self.push(key, gap, start);
    }

    /// Millionths, written with six decimals.
    pub(crate) fn millionths(&mut self, key: &'static str, gap: Gap, value: i64) {
        let start = self.text.len();
        push_fixed(&mut self.text, value, 6);
        self.push(key, gap, start);
    }

    /// Lays the collected event out.
    pub(crate) fn end(&mut self) {
        if self.layout == Layout::Shuffled {
            self.shuffle.shuffle(&mut self.fields);
            self.shuffle.shuffle(&mut self.args);
        }
        if self.events > 0 {
            self.buffer.push(b',');
        }
        self.events += 1;
        let (open, close): (&[u8], &[u8]) = match self.layout {
            Layout::Classic | Layout::Head => (b"\n  {\n    ", b"\n  }"),
            Layout::Minified => (b"{", b"}"),
            Layout::Shuffled => (b"\n{", b"}"),
        };
        self.buffer.extend_from_slice(open);
        let args_at = match (self.in_args, self.layout) {
            (false, _) => usize::MAX,
            (true, Layout::Shuffled) => self.shuffle.below(self.fields.len() as u64 + 1) as usize,
            (true, _) => self.fields.len(),
        };
        for i in 0..=self.fields.len() {
            if i == args_at {
                self.lay_args(i == 0);
            }
            if let Some(&field) = self.fields.get(i) {
                if i > 0 || args_at == 0 {
                    let gap: &[u8] = match (self.layout, field.gap) {
                        (Layout::Minified, _) => b",",
                        (Layout::Head, _) | (Layout::Classic, Gap::Line) => b",\n    ",
                        _ => b", ",
                    };
                    self.buffer.extend_from_slice(gap);
                }
                self.lay_field(field);
            }
        }
        self.buffer.extend_from_slice(close);
        self.fields.clear();
        self.args.clear();
        self.text.clear();
        self.in_args = false;
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush();
        }
    }

    fn lay_args(&mut self, first: bool) {
        let (before, open, close): (&[u8], &[u8], &[u8]) = match self.layout {
            Layout::Classic => (b",\n    ", b"\"args\": {\n      ", b"\n    }"),
            Layout::Head => (b"\n    ,\n    ", b"\"args\": {\n      ", b"\n    }"),
            Layout::Minified => (b",", b"\"args\":{", b"}"),
            Layout::Shuffled => (b", ", b"\"args\": {", b"}"),
        };
        if !first {
            self.buffer.extend_from_slice(before);
        }
        self.buffer.extend_from_slice(open);
        for i in 0..self.args.len() {
            let field = self.args[i];
            if i > 0 {
                let gap: &[u8] = match (self.layout, field.gap) {
                    (Layout::Minified, _) | (Layout::Classic | Layout::Head, Gap::Tight) => b",",
                    (Layout::Classic | Layout::Head, Gap::Wide) => b",      ",
                    _ => b", ",
                };
                self.buffer.extend_from_slice(gap);
            }
            self.lay_field(field);
        }
        self.buffer.extend_from_slice(close);
    }

    fn lay_field(&mut self, field: Field) {
        self.buffer.push(b'"');
        self.buffer.extend_from_slice(field.key.as_bytes());
        let value = &self.text[field.start..field.end];
        if self.layout == Layout::Minified {
            self.buffer.extend_from_slice(b"\":");
            push_minified(&mut self.buffer, value);
        } else {
            self.buffer.extend_from_slice(b"\": ");
            self.buffer.extend_from_slice(value);
        }
    }

    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.sink.write_all(&self.buffer)
        {
            self.error = Some(error);
        }
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
    }

    /// Hands the rest on and reports the first write error, if there was one.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.flush();
        match self.error.take() {
            Some(error) => Err(error),
            None => self.sink.flush(),
        }
    }
}

/// Copies JSON without the whitespace that stands outside its strings.
pub(crate) fn push_minified(out: &mut Vec<u8>, json: &[u8]) {
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            in_string = true;
        } else if byte.is_ascii_whitespace() {
            continue;
        }
        out.push(byte);
    }
}

pub(crate) fn push_int(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// A non-negative count of 10^-`decimals`, as a decimal number.
fn push_fixed(out: &mut Vec<u8>, value: i64, decimals: usize) {
    let scale = 10i64.pow(decimals as u32);
    push_int(out, value / scale);
    out.push(b'.');
    let mut rest = value % scale;
    let at = out.len();
    out.resize(at + decimals, b'0');
    for slot in out[at..].iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(layout: Layout) -> String {
        let mut bytes = Vec::new();
        let mut writer = EventWriter::new(&mut bytes, layout, 1);
        writer.text("ph", Gap::Space, b"X");
        writer.text("name", Gap::Space, b"a { \\\" b");
        writer.micros("ts", Gap::Line, 1_234_005);
        writer.args();
        writer.int("External id", Gap::Space, 7);
        writer.json("Input Dims", Gap::Tight, b"[[1, 2], []]");
        writer.millionths("blocks per SM", Gap::Wide, 135_515_152);
        writer.end();
        writer.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn classic_and_head_look_as_kineto_writes_them() {
        assert_eq!(
            one(Layout::Classic),
            "\n  {\n    \"ph\": \"X\", \"name\": \"a { \\\" b\",\n    \"ts\": 1234.005,\n    \"args\": {\n      \"External id\": 7,\"Input Dims\": [[1, 2], []],      \"blocks per SM\": 135.515152\n    }\n  }"
        );
        assert_eq!(
            one(Layout::Head),
            "\n  {\n    \"ph\": \"X\",\n    \"name\": \"a { \\\" b\",\n    \"ts\": 1234.005\n    ,\n    \"args\": {\n      \"External id\": 7,\"Input Dims\": [[1, 2], []],      \"blocks per SM\": 135.515152\n    }\n  }"
        );
    }

    #[test]
    fn every_layout_says_the_same() {
        let expected: serde_json::Value = serde_json::from_str(&one(Layout::Classic)).unwrap();
        for layout in [Layout::Head, Layout::Minified, Layout::Shuffled] {
            let found: serde_json::Value = serde_json::from_str(&one(layout)).unwrap();
            assert_eq!(found, expected, "{layout:?}");
        }
        let spaces = one(Layout::Minified).bytes().filter(|b| *b == b' ').count();
        assert_eq!(spaces, 7, "only the spaces inside strings and keys are left");
    }

    #[test]
    fn numbers() {
        let mut out = Vec::new();
        push_int(&mut out, i64::MIN);
        out.push(b' ');
        push_int(&mut out, 0);
        out.push(b' ');
        push_fixed(&mut out, 7, 3);
        assert_eq!(out, b"-9223372036854775808 0 0.007");
    }
}
