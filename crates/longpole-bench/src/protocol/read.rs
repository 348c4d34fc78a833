//! Readers of what a suite prints. A suite is a foreign program: every length is bounded, and a fault names its line.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

use super::sequence::{implausible, shortened};
use super::{Benchmark, Device, End, Event, LIST_SCHEMA, List, Peak, Sample, Start};
use crate::key::Key;

/// Bytes of the longest line of a run.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Bytes of the longest list.
pub const MAX_LIST_BYTES: usize = 64 << 20;

/// Benchmarks of the longest list.
pub const MAX_BENCHMARKS: usize = 100_000;

/// Why what a suite printed could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The pipe or file failed.
    #[error("line {line}: {cause}")]
    Io {
        /// Number of the line, from 1.
        line: u64,
        /// What the system says.
        cause: std::io::Error,
    },
    /// A line of JSON is longer than [`MAX_LINE_BYTES`].
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LongLine {
        /// Number of the line, from 1.
        line: u64,
    },
    /// A line that is meant to be an event and is no JSON, such as one with a NaN.
    #[error("line {line}, column {column}: an event that is no JSON: {cause}")]
    Json {
        /// Number of the line, from 1.
        line: u64,
        /// Where reading came to an end, in bytes from 1.
        column: usize,
        /// What is wrong there.
        cause: String,
    },
    /// A line names a known event and breaks its form.
    #[error("line {line}: the event `{event}` is not as the protocol says: {cause}")]
    Event {
        /// Number of the line, from 1.
        line: u64,
        /// The event it names.
        event: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Events in an order that makes no sense.
    #[error("line {line}: {cause}")]
    Order {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: String,
    },
    /// The list is longer than [`MAX_LIST_BYTES`].
    #[error("the list of benchmarks is longer than {MAX_LIST_BYTES} bytes")]
    LongList,
    /// The list is no list.
    #[error("the list of benchmarks is not as the protocol says: {0}")]
    List(String),
}

/// Reads a list to its end.
///
/// Text before the line that opens the object and behind the one that closes it is passed over: libraries like to greet, and to say goodbye.
pub fn read_list(input: impl Read) -> Result<List, ReadError> {
    let mut text = Vec::new();
    let read = input.take(MAX_LIST_BYTES as u64 + 1).read_to_end(&mut text);
    read.map_err(|cause| ReadError::Io { line: 1, cause })?;
    if text.len() > MAX_LIST_BYTES {
        return Err(ReadError::LongList);
    }
    let start = text.split_inclusive(|byte| *byte == b'\n').scan(0, |at, line| {
        let here = *at;
        *at += line.len();
        Some((here, line))
    });
    let start = start.into_iter().find(|(_, line)| line.trim_ascii_start().starts_with(b"{")).map(|(at, _)| at);
    let Some(start) = start else { return Err(ReadError::List("it holds no JSON object".to_owned())) };
    let mut lists = serde_json::Deserializer::from_slice(&text[start..]).into_iter::<List>();
    let list = lists.next().unwrap_or_else(|| Err(serde::de::Error::custom("it is empty")));
    let mut list = list.map_err(|error| ReadError::List(error.to_string()))?;
    check_end(&text[start + lists.byte_offset()..]).map_err(ReadError::List)?;
    check_list(&mut list).map_err(ReadError::List)?;
    Ok(list)
}

/// What stands behind the object: text, from the next line on.
fn check_end(rest: &[u8]) -> Result<(), String> {
    let mut lines = rest.split(|byte| *byte == b'\n');
    if !lines.next().unwrap_or_default().trim_ascii().is_empty() {
        return Err("trailing characters stand behind the object, on its last line".to_owned());
    }
    if lines.any(|line| line.trim_ascii_start().starts_with(b"{")) {
        return Err("another object stands behind the first".to_owned());
    }
    Ok(())
}

fn check_list(list: &mut List) -> Result<(), String> {
    if list.schema != LIST_SCHEMA {
        return Err(format!("its schema is `{}`, expected `{LIST_SCHEMA}`", shortened(&list.schema)));
    }
    if list.benchmarks.len() > MAX_BENCHMARKS {
        return Err(format!("it has {} benchmarks, more than {MAX_BENCHMARKS}", list.benchmarks.len()));
    }
    list.benchmarks.iter_mut().try_for_each(agree_with_key)?;
    let mut seen = BTreeSet::new();
    for benchmark in &list.benchmarks {
        if !seen.insert(&benchmark.key) {
            return Err(format!("{} is in it twice", benchmark.key));
        }
        if benchmark.unit_runs == 0 {
            return Err(format!("unit_runs of {} is 0", benchmark.key));
        }
        if let Some(what) = implausible(benchmark.bytes, benchmark.flops) {
            return Err(format!("{} has {what}", benchmark.key));
        }
    }
    Ok(())
}

/// The parts of a key stand beside it for whoever reads the list; two answers to what they are would be one too many.
fn agree_with_key(benchmark: &mut Benchmark) -> Result<(), String> {
    let key = &benchmark.key;
    let phase = benchmark.phase.as_deref().or(key.phase());
    let said = [("model", Some(benchmark.model.as_str()), Some(key.model())), ("op", Some(&benchmark.op), Some(key.name()))];
    for (what, said, is) in said.into_iter().chain([("phase", phase, key.phase())]) {
        if said != is {
            let (said, is) = (shortened(said.unwrap_or_default()), is.map_or_else(|| "none".to_owned(), |is| format!("`{is}`")));
            return Err(format!("the {what} of {key} is said to be `{said}`, by its key it is {is}"));
        }
    }
    benchmark.phase = key.phase().map(str::to_owned);
    Ok(())
}

/// A line of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// An event of the protocol.
    Event(Box<Event>),
    /// An event of a later version of the protocol, by its name.
    Unknown(String),
    /// Anything else: text for the user, shortened to [`MAX_LINE_BYTES`].
    Text(String),
}

/// The lines of a run, as they come.
///
/// Iteration goes on behind a faulty line; after [`ReadError::Io`] it ends.
pub struct Events<R> {
    input: R,
    line: u64,
    broken: bool,
}

impl<R: BufRead> Events<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, broken: false }
    }

    /// Number of the line read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next line without its end, its beginning only if it is too long, and whether that was so; `None` at the end of the input.
    fn next_line(&mut self) -> std::io::Result<Option<(Vec<u8>, bool)>> {
        let mut text = Vec::new();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if self.input.by_ref().take(limit).read_until(b'\n', &mut text)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        let long = text.last() != Some(&b'\n') && text.len() > MAX_LINE_BYTES;
        if long {
            self.input.skip_until(b'\n')?;
            text.truncate(MAX_LINE_BYTES);
        }
        Ok(Some((text, long)))
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        match self.next_line() {
            Ok(None) => None,
            Ok(Some((text, true))) if text.trim_ascii_start().starts_with(b"{") => Some(Err(ReadError::LongLine { line: self.line })),
            Ok(Some((text, _))) => Some(parse(text.trim_ascii_end(), self.line)),
            Err(cause) => {
                self.broken = true;
                Some(Err(ReadError::Io { line: self.line + 1, cause }))
            }
        }
    }
}

/// One line as what it is.
fn parse(text: &[u8], line: u64) -> Result<Line, ReadError> {
    let as_text = || Line::Text(String::from_utf8_lossy(text).into_owned());
    if !text.trim_ascii_start().starts_with(b"{") {
        return Ok(as_text());
    }
    let value = match serde_json::from_slice::<Value>(text) {
        Ok(value) => value,
        Err(error) if is_meant_as_event(text) => return Err(no_json(&error, line)),
        Err(_) => return Ok(as_text()),
    };
    let Some(event) = value.get("event").and_then(Value::as_str).map(str::to_owned) else { return Ok(as_text()) };
    match known(&event, &value) {
        Ok(Some(parsed)) => Ok(Line::Event(Box::new(parsed))),
        Ok(None) => Ok(Line::Unknown(event)),
        Err(error) => Err(ReadError::Event { line, event, cause: error.to_string() }),
    }
}

/// Whether a line that opens an object names a key `event`: no library prints that to greet, and passing over what a suite measured would blame
/// the lines that follow for it.
fn is_meant_as_event(text: &[u8]) -> bool {
    const KEY: &[u8] = b"\"event\"";
    let mut rest = text;
    while let Some(at) = rest.windows(KEY.len()).position(|window| window == KEY) {
        rest = &rest[at + KEY.len()..];
        if rest.trim_ascii_start().starts_with(b":") {
            return true;
        }
    }
    false
}

/// Says where a line stops being JSON. The error's own line is always the first.
fn no_json(error: &serde_json::Error, line: u64) -> ReadError {
    let said = error.to_string();
    let cause = said.split(" at line ").next().unwrap_or_default().to_owned();
    ReadError::Json { line, column: error.column(), cause }
}

/// An event of this protocol's version, by its name. Read by hand and not as a tagged enum: those see the numbers of `serde_json` as maps where
/// another crate of the program asks it for arbitrary precision.
fn known(name: &str, value: &Value) -> Result<Option<Event>, serde_json::Error> {
    #[derive(Deserialize)]
    struct OfDevice {
        device: Device,
    }
    #[derive(Deserialize)]
    struct OfError {
        key: Key,
        message: String,
    }
    #[derive(Deserialize)]
    struct OfProfile {
        key: Key,
        launches: u32,
    }
    Ok(Some(match name {
        "device" => OfDevice::deserialize(value).map(|OfDevice { device }| Event::Device { device })?,
        "start" => Event::Start(Start::deserialize(value)?),
        "sample" => Event::Sample(Sample::deserialize(value)?),
        "end" => Event::End(End::deserialize(value)?),
        "error" => OfError::deserialize(value).map(|OfError { key, message }| Event::Error { key, message })?,
        "profile" => OfProfile::deserialize(value).map(|OfProfile { key, launches }| Event::Profile { key, launches })?,
        "peak" => Event::Peak(Peak::deserialize(value)?),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Benchmark, PeakKind, SuiteInfo};
    use super::*;
    use crate::key::Key;

    fn lines(text: &str) -> Vec<String> {
        Events::new(text.as_bytes())
            .map(|line| match line {
                Ok(Line::Event(event)) => event.to_line(),
                Ok(Line::Unknown(name)) => format!("unknown {name}"),
                Ok(Line::Text(text)) => format!("text {text}"),
                Err(error) => format!("error {error}"),
            })
            .collect()
    }

    fn list() -> List {
        let mut benchmark = Benchmark::new(Key::parse("m/ops/copy/decode/float4").unwrap());
        benchmark.bytes = Some(1 << 31);
        List {
            schema: LIST_SCHEMA.to_owned(),
            suite: SuiteInfo { name: "example".to_owned(), version: Some("1".to_owned()) },
            benchmarks: vec![benchmark],
        }
    }

    #[test]
    fn a_list_comes_back_as_it_was() {
        let text = serde_json::to_string_pretty(&list()).unwrap();
        assert_eq!(read_list(text.as_bytes()).unwrap(), list());
        assert_eq!(read_list(format!("warning: hello\n\n{text}\n").as_bytes()).unwrap(), list());
        assert_eq!(read_list(format!("{text} \r\nbye\n[1]\n").as_bytes()).unwrap(), list());
        // A phase that is left out is that of the key.
        let mut without = list();
        without.benchmarks[0].phase = None;
        assert_eq!(read_list(serde_json::to_vec(&without).unwrap().as_slice()).unwrap(), list());
        // What is left out is not known.
        let short =
            r#"{"schema":"longpole.suite.list/1","suite":{"name":"x"},"benchmarks":[{"key":"m/model/step/v","model":"m","op":"step"}]}"#;
        let read = read_list(short.as_bytes()).unwrap();
        assert_eq!((read.benchmarks[0].bytes, read.benchmarks[0].unit_runs, &read.suite.version), (None, 1, &None));
    }

    #[test]
    fn faults_of_a_list_are_said() {
        let fault = |change: &dyn Fn(&mut List)| {
            let mut list = list();
            change(&mut list);
            read_list(serde_json::to_string(&list).unwrap().as_bytes()).unwrap_err().to_string()
        };
        assert!(fault(&|list| list.schema = "other/1".to_owned()).contains("its schema is `other/1`"));
        assert!(fault(&|list| list.benchmarks.push(list.benchmarks[0].clone())).contains("m/ops/copy/decode/float4 is in it twice"));
        assert!(fault(&|list| list.benchmarks[0].unit_runs = 0).contains("unit_runs"));
        assert!(
            fault(&|list| list.benchmarks[0].bytes = Some(u64::MAX)).contains("float4 has 18446744073709551615 bytes, more than any run")
        );
        assert!(fault(&|list| list.benchmarks[0].flops = Some(1 << 63)).contains("float4 has 9223372036854775808 operations, more than"));
        let said = fault(&|list| list.benchmarks[0].op = "\u{1b}[31mred".to_owned());
        assert!(said.contains("the op of m/ops/copy/decode/float4 is said to be `\u{1b}[31mred`, by its key it is `copy`"), "{said}");
        assert!(fault(&|list| list.benchmarks[0].model = "n".to_owned()).contains("the model of"));
        assert!(fault(&|list| list.benchmarks[0].phase = Some("prefill".to_owned())).contains("by its key it is `decode`"));
        for (text, expected) in [
            ("", "no JSON object"),
            ("hello", "no JSON object"),
            ("{\"schema\": 1}", "line 1"),
            ("{}", "missing field"),
            (r#"{"schema":"longpole.suite.list/1","suite":{"name":"x"},"benchmarks":[{"key":"m","model":"m","op":"o"}]}"#, "is no key"),
            (r#"{"schema":"longpole.suite.list/1","suite":{"name":"x"},"benchmarks":[]} trailing"#, "trailing"),
            ("{\"schema\":\"longpole.suite.list/1\",\"suite\":{\"name\":\"x\"},\"benchmarks\":[]}\n{}", "another object"),
        ] {
            let error = read_list(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn endless_lists_end() {
        let error = read_list(std::io::repeat(b'{')).unwrap_err();
        assert!(matches!(error, ReadError::LongList), "{error}");
    }

    #[test]
    fn events_and_text_mix() {
        let peak = Event::Peak(Peak { kind: PeakKind::FlopsPerS, dtype: Some("bf16".to_owned()), value: 7.9e14 }).to_line();
        let text = format!("Loading...\n{peak}\r\n{{\"event\":\"later\",\"x\":1}}\n{{\"x\":1}}\n{{ no json\n[1]\n\n{peak}");
        let expected = ["text Loading...", peak.as_str(), "unknown later", "text {\"x\":1}", "text { no json", "text [1]", "text ", &peak];
        assert_eq!(lines(&text), expected);
    }

    #[test]
    fn a_fault_names_its_line_and_reading_goes_on() {
        let text = "hello\n{\"event\":\"sample\",\"key\":\"m/ops/a/b/c\",\"index\":0}\n{\"event\":\"error\",\"key\":\"m/ops/a/b/c\",\"message\":\"no\"}\n";
        let read = lines(text);
        assert!(read[1].starts_with("error line 2: the event `sample`") && read[1].contains("time_ps"), "{}", read[1]);
        assert!(read[2].contains("\"message\":\"no\""), "{}", read[2]);
        let negative = lines(r#"{"event":"sample","key":"m/ops/a/b/c","index":0,"time_ps":-5}"#);
        // What is wrong with it is in the words of `serde_json`, which depend on the numbers that it is asked to keep.
        assert!(negative[0].starts_with("error line 1: the event `sample`"), "{negative:?}");
    }

    #[test]
    fn long_lines_are_bounded() {
        let long = "x".repeat(3 * MAX_LINE_BYTES);
        let read: Vec<_> = Events::new(format!("{long}\n{{{long}\nnext").as_bytes().to_vec().as_slice()).collect();
        assert!(matches!(&read[0], Ok(Line::Text(text)) if text.len() == MAX_LINE_BYTES));
        assert!(matches!(read[1], Err(ReadError::LongLine { line: 2 })));
        assert!(matches!(&read[2], Ok(Line::Text(text)) if text == "next"));
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let read: Vec<_> = Events::new(&b"\xff\xfe\n{\"x\":\"\xff\"}\n"[..]).collect();
        assert!(read.iter().all(|line| matches!(line, Ok(Line::Text(_)))), "{read:?}");
        // Deeply nested JSON ends in the reader's own limit, not in the stack's.
        let deep = lines(&format!("{{\"event\":{}", "[".repeat(500_000)));
        assert!(deep[0].contains("recursion limit"), "{}", &deep[0][..20]);
    }

    #[test]
    fn an_event_that_is_no_json_is_no_text() {
        // What Python's `json.dumps` makes of NaN, with the keys in whatever order.
        let end = r#"{"event": "end", "key": "m/ops/a/b/c", "relative_error": NaN}"#;
        let sorted = r#" {"correct": true, "event" : "end", "relative_error": Infinity}"#;
        let cut = r#"{"event":"sample","key":"m/op"#;
        let read = lines(&format!("hello\n{end}\n{sorted}\n{{\"event\":\"\u{1}\"}}\n{{see \"event\" below\n{cut}"));
        assert_eq!(read[1], "error line 2, column 58: an event that is no JSON: expected value");
        assert!(read[2].starts_with("error line 3, column ") && read[3].starts_with("error line 4, column "), "{read:?}");
        assert_eq!(read[4], "text {see \"event\" below");
        assert!(read[5].starts_with("error line 6, column 29: an event that is no JSON: EOF while parsing a string"), "{read:?}");
        let bytes: Vec<_> = Events::new(&b"{\"event\":\"\xff\"}\n"[..]).collect();
        assert!(matches!(bytes[0], Err(ReadError::Json { line: 1, .. })), "{bytes:?}");
    }
}
