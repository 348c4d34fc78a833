//! JSON text, one event a line, written as it comes: nothing but the line being made is held.

use std::io::{self, Write};

use longpole_trace::{Ns, Tid};

use crate::names::is_unprintable;

/// Bytes gathered before they are written out.
const CHUNK: usize = 1 << 16;

/// A JSON document on its way out.
pub(super) struct JsonLines<'w> {
    out: &'w mut dyn Write,
    pending: Vec<u8>,
    bytes: u64,
    events: u64,
    /// The moment that times of events count from.
    zero: Ns,
}

/// Where the viewer shows an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// A thread of a process.
    Thread(i64, &'a Tid),
    /// A stream of a device.
    Stream(i64, i64),
    /// A row of the device that is not said.
    NoDevice(i64),
}

impl<'w> JsonLines<'w> {
    pub(super) fn new(out: &'w mut dyn Write, zero: Ns) -> Self {
        Self { out, pending: Vec::with_capacity(CHUNK + 4096), bytes: 0, events: 0, zero }
    }

    /// The moment that times of events count from.
    pub(super) fn zero(&self) -> Ns {
        self.zero
    }

    /// Events so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Text between events.
    pub(super) fn text(&mut self, text: &str) {
        self.pending.extend_from_slice(text.as_bytes());
    }

    /// The members of an object that is open, to be added to.
    pub(super) fn members(&mut self) -> Members<'_> {
        Members { out: &mut self.pending, first: true }
    }

    /// A complete event, `args` left out when there are none.
    pub(super) fn complete(
        &mut self,
        (cat, name): (&str, &str),
        place: Place<'_>,
        (start, dur): (Ns, Ns),
        args: impl FnOnce(&mut Members<'_>),
    ) -> io::Result<()> {
        self.open(b'X', cat, name);
        self.place(place, Some(start));
        self.pending.extend_from_slice(b",\"dur\":");
        push_micros(&mut self.pending, dur);
        self.close(args)
    }

    /// An event with no duration; `more` is text of further members.
    pub(super) fn instant(
        &mut self,
        phase: u8,
        (cat, name): (&str, &str),
        place: Place<'_>,
        start: Option<Ns>,
        more: impl FnOnce(&mut Members<'_>),
        args: impl FnOnce(&mut Members<'_>),
    ) -> io::Result<()> {
        self.open(phase, cat, name);
        self.place(place, start);
        more(&mut Members { out: &mut self.pending, first: false });
        self.close(args)
    }

    fn open(&mut self, phase: u8, cat: &str, name: &str) {
        self.pending.extend_from_slice(if self.events == 0 { b"\n{\"ph\":\"" } else { b",\n{\"ph\":\"" });
        self.pending.push(phase);
        self.pending.push(b'"');
        self.events += 1;
        if !cat.is_empty() {
            self.pending.extend_from_slice(b",\"cat\":");
            push_string(&mut self.pending, cat);
        }
        self.pending.extend_from_slice(b",\"name\":");
        push_string(&mut self.pending, name);
    }

    fn place(&mut self, place: Place<'_>, start: Option<Ns>) {
        let out = &mut self.pending;
        out.extend_from_slice(b",\"pid\":");
        let tid = match place {
            Place::Thread(pid, tid) => {
                push_integer(out, pid);
                tid
            }
            Place::Stream(device, stream) => {
                push_integer(out, device);
                &Tid::Number(stream)
            }
            Place::NoDevice(stream) => {
                out.extend_from_slice(b"\"\"");
                &Tid::Number(stream)
            }
        };
        out.extend_from_slice(b",\"tid\":");
        match tid {
            Tid::Number(number) => push_integer(out, *number),
            Tid::Text(text) => push_string(out, text),
        }
        if let Some(start) = start {
            out.extend_from_slice(b",\"ts\":");
            push_micros(out, start - self.zero);
        }
    }

    fn close(&mut self, args: impl FnOnce(&mut Members<'_>)) -> io::Result<()> {
        const ARGS: &[u8] = b",\"args\":{";
        self.pending.extend_from_slice(ARGS);
        let begin = self.pending.len();
        args(&mut Members { out: &mut self.pending, first: true });
        if self.pending.len() == begin {
            self.pending.truncate(begin - ARGS.len());
        } else {
            self.pending.push(b'}');
        }
        self.pending.push(b'}');
        if self.pending.len() >= CHUNK { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.pending)?;
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes what is left; the number of bytes of all.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.write_out()?;
        self.out.flush()?;
        Ok(self.bytes)
    }
}

/// Members of an open object.
pub(super) struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Members<'_> {
    fn key(&mut self, key: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        push_string(self.out, key);
        self.out.push(b':');
    }

    /// A whole number.
    pub(super) fn number(&mut self, key: &str, value: impl Into<i128>) {
        self.key(key);
        push_integer(self.out, value.into());
    }

    /// A whole number, if there is one.
    pub(super) fn optional(&mut self, key: &str, value: Option<impl Into<i128>>) {
        if let Some(value) = value {
            self.number(key, value);
        }
    }

    /// A time.
    pub(super) fn micros(&mut self, key: &str, time: Ns) {
        self.key(key);
        push_micros(self.out, time);
    }

    /// A string.
    pub(super) fn string(&mut self, key: &str, text: &str) {
        self.key(key);
        push_string(self.out, text);
    }

    /// A string, if there is one or something that stands for it.
    pub(super) fn string_or(&mut self, key: &str, text: Option<&str>, instead: Option<&str>) {
        if let Some(text) = text.or(instead) {
            self.string(key, text);
        }
    }

    /// A value that is JSON already.
    pub(super) fn json(&mut self, key: &str, json: &str) {
        self.key(key);
        self.out.extend_from_slice(json.as_bytes());
    }

    /// Three whole numbers.
    pub(super) fn triple(&mut self, key: &str, values: [u32; 3]) {
        self.key(key);
        for (before, value) in [b'[', b',', b','].into_iter().zip(values) {
            self.out.push(before);
            push_integer(self.out, value);
        }
        self.out.push(b']');
    }

    /// An object.
    pub(super) fn object(&mut self, key: &str, members: impl FnOnce(&mut Members<'_>)) {
        self.key(key);
        self.braces(members);
    }

    /// A list of objects.
    pub(super) fn objects<T>(&mut self, key: &str, items: impl Iterator<Item = T>, mut members: impl FnMut(&mut Members<'_>, T)) {
        self.key(key);
        self.out.push(b'[');
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.braces(|object| members(object, item));
        }
        self.out.push(b']');
    }

    fn braces(&mut self, members: impl FnOnce(&mut Members<'_>)) {
        self.out.push(b'{');
        members(&mut Members { out: self.out, first: true });
        self.out.push(b'}');
    }
}

/// Decimal microseconds with three decimals, from whole nanoseconds: exact.
pub(super) fn push_micros(out: &mut Vec<u8>, time: Ns) {
    let (ns, digit) = (time.get().unsigned_abs(), |value: u64| b'0' + (value % 10) as u8);
    if time < Ns::ZERO {
        out.push(b'-');
    }
    push_integer(out, ns / 1_000);
    out.extend_from_slice(&[b'.', digit(ns / 100), digit(ns / 10), digit(ns)]);
}

fn push_integer(out: &mut Vec<u8>, value: impl Into<i128>) {
    let value = value.into();
    if value < 0 {
        out.push(b'-');
    }
    let mut digits = [0; 39];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    // Nearly every number fits 64 bits, where division is cheap.
    while rest > u128::from(u64::MAX) {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut rest = rest as u64;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A JSON string. What would act on a terminal, or change how its neighbours are shown, is written as an escape as well as what JSON
/// asks for, so that the text can be looked at with anything.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        out.extend_from_slice(text.as_bytes());
    } else {
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                c if is_unprintable(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        push_unit(out, *unit);
                    }
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    out.push(b'"');
}

/// A UTF-16 unit as an escape.
fn push_unit(out: &mut Vec<u8>, unit: u16) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    out.extend([12, 8, 4, 0].map(|shift| HEX[usize::from(unit >> shift & 15)]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(time: i64) -> String {
        let mut out = Vec::new();
        push_micros(&mut out, Ns(time));
        String::from_utf8(out).unwrap()
    }

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn integer(value: i128) -> String {
        let mut out = Vec::new();
        push_integer(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_have_three_decimals() {
        for (time, text) in [
            (0, "0.000"),
            (1, "0.001"),
            (-1, "-0.001"),
            (1_712_195_495_521_716_781, "1712195495521716.781"),
            (i64::MAX, "9223372036854775.807"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            assert_eq!(micros(time), text);
        }
    }

    #[test]
    fn names_that_act_are_written_as_escapes() {
        assert_eq!(string("a\"b\\c\n\t\r"), r#""a\"b\\c\n\t\r""#);
        assert_eq!(string("\u{1b}[31m \u{9b}2J \u{202e} \u{200b}"), r#""\u001b[31m \u009b2J \u202e \u200b""#);
        assert_eq!(string("caf\u{e9} \u{1f600} \u{e0001}"), "\"caf\u{e9} \u{1f600} \\udb40\\udc01\"");
    }

    proptest! {
        #[test]
        fn a_time_is_exact(time in any::<i64>()) {
            let text = micros(time);
            let (whole, thousandths) = text.split_once('.').unwrap();
            prop_assert_eq!(thousandths.len(), 3);
            let digits: i128 = format!("{whole}{thousandths}").parse().unwrap();
            prop_assert_eq!(digits, i128::from(time));
            prop_assert!(serde_json::from_str::<serde_json::Number>(&text).is_ok());
        }

        #[test]
        fn a_number_is_exact(value in any::<i64>(), unsigned in any::<u64>()) {
            prop_assert_eq!(integer(value.into()), value.to_string());
            prop_assert_eq!(integer(unsigned.into()), unsigned.to_string());
            prop_assert_eq!(integer(i128::from(value) * i128::from(unsigned)), (i128::from(value) * i128::from(unsigned)).to_string());
        }

        #[test]
        fn a_name_reads_back_and_does_nothing(text in any::<String>(), odd in "[\"\\\\\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{202e}\u{2066}-\u{2069}\u{1f600}a]*") {
            for text in [text, odd] {
                let json = string(&text);
                prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
                prop_assert!(!json.contains(is_unprintable));
            }
        }
    }
}
