//! Profiles that hold sums instead of events: no row of them says when anything ran.
//!
//! [`proton`] reads the trees of Triton's Proton, [`tensorrt`] the lists of TensorRT's `trtexec --exportProfile`. Both are one JSON
//! document of moderate size, read whole and walked once; nesting costs a stack of our own, so that depth is no danger. What is before
//! damage is kept.

mod proton;
mod sniff;
mod tensorrt;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use longpole_trace::{ProblemCode, Problems};

use crate::formats::{Report, Source};
use crate::json::{Cursor, Damage, Decimal, Value, ValueKind, parse_scaled};

pub(crate) use proton::read as read_proton;
pub(crate) use sniff::{looks_like_proton, looks_like_tensorrt};
pub(crate) use tensorrt::read as read_tensorrt;

/// Larger documents are read as far as this: a tree of ten million nodes is smaller.
const MOST_BYTES: u64 = 1 << 30;

/// A document, and the trouble met on the way to it.
struct Document {
    bytes: Vec<u8>,
    problems: Problems,
}

impl Document {
    fn read(source: Source<'_>, report: Report<'_>) -> io::Result<Self> {
        match source {
            Source::File(_, path) => Self::read_file(path, report),
            Source::Stream(input, consumed) => Ok(Self::read_stream(input, &|_| report(consumed.load(Ordering::Relaxed)))),
        }
    }

    fn read_file(path: &Path, report: Report<'_>) -> io::Result<Self> {
        let done = AtomicU64::new(0);
        let mut file = File::open(path)?;
        Ok(Self::read_stream(&mut file, &|bytes| {
            done.store(bytes, Ordering::Relaxed);
            report(bytes);
        }))
    }

    fn read_stream(input: &mut dyn Read, report: &dyn Fn(u64)) -> Self {
        let (mut bytes, mut problems) = (Vec::new(), Problems::default());
        let mut limited = input.take(MOST_BYTES + 1);
        let mut buffer = vec![0; 1 << 18];
        loop {
            match limited.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    bytes.extend_from_slice(&buffer[..read]);
                    report(bytes.len() as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    problems.add(ProblemCode::DamagedCompression, Some(bytes.len() as u64), || Some(error.to_string()));
                    break;
                }
            }
        }
        if bytes.len() as u64 > MOST_BYTES {
            bytes.truncate(MOST_BYTES as usize);
            problems.add(ProblemCode::Truncated, Some(MOST_BYTES), || Some("only the first gibibyte is read".to_owned()));
        }
        Self { bytes, problems }
    }

    /// Notes why reading stopped.
    fn note(problems: &mut Problems, damage: Damage, bytes: usize) {
        match damage {
            // A damaged stream ends early as well, which is said already.
            Damage::Incomplete if problems.get(ProblemCode::DamagedCompression).is_some() => {}
            Damage::Incomplete => problems.add(ProblemCode::Truncated, Some(bytes as u64), || None),
            Damage::Malformed(at) => problems.add(ProblemCode::DamagedTree, Some(at as u64), || None),
        }
    }
}

/// A cursor that also sees to it that nothing but white space and commas stands between the values it takes.
struct Walk<'a> {
    cursor: Cursor<'a>,
    /// Behind what was taken last.
    at: usize,
}

/// What comes next in an array.
enum Item {
    Object,
    /// An array, which is open now.
    Array,
    /// A string, which is taken.
    Text,
    /// The end of the array.
    End,
}

/// What a member's value is, which is open now if it is a container.
enum Member<'a> {
    Object,
    Array,
    Value(Value<'a>),
}

impl<'a> Walk<'a> {
    /// Walks the elements of the array that the document is.
    fn new(bytes: &'a [u8]) -> Result<Self, Damage> {
        let mut walk = Self { cursor: Cursor::new(bytes, Vec::new()), at: if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 } };
        match walk.item()? {
            Item::Array => Ok(walk),
            _ => Err(Damage::Malformed(0)),
        }
    }

    /// Checks that nothing was passed over up to `end`.
    fn clean(&self, end: usize) -> Result<(), Damage> {
        let gap = self.cursor.bytes().get(self.at..end).unwrap_or_default();
        match gap.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',')) {
            Some(bad) => Err(Damage::Malformed(self.at + bad)),
            None => Ok(()),
        }
    }

    /// The next object or array of the array that it stands in.
    fn item(&mut self) -> Result<Item, Damage> {
        let (at, byte) = self.cursor.take_structural().ok_or(Damage::Incomplete)?;
        self.clean(at)?;
        self.at = at + 1;
        match byte {
            b'{' => Ok(Item::Object),
            b'[' => Ok(Item::Array),
            b']' => Ok(Item::End),
            b'"' => {
                let (close, _) = self.cursor.take_structural().ok_or(Damage::Incomplete)?;
                self.at = close + 1;
                Ok(Item::Text)
            }
            _ => Err(Damage::Malformed(at)),
        }
    }

    /// The next key of the object that it stands in, and where its value begins; `None` behind the object's end.
    fn key(&mut self) -> Result<Option<(&'a [u8], usize)>, Damage> {
        match self.cursor.key()? {
            crate::json::Key::Member(name, after) => {
                self.clean(after.saturating_sub(name.len() + 2))?;
                self.at = after;
                Ok(Some((name, after)))
            }
            crate::json::Key::End(end) => {
                self.clean(end - 1)?;
                self.at = end;
                self.cursor.verdict(Ok(end))?;
                Ok(None)
            }
        }
    }

    /// The value behind a key.
    fn member(&mut self, after: usize) -> Result<Member<'a>, Damage> {
        use crate::json::Entered;
        Ok(match self.cursor.enter_or_value(after)? {
            Entered::Object => {
                self.at = self.container_start(after, b'{');
                Member::Object
            }
            Entered::Array(at) => {
                self.at = at;
                Member::Array
            }
            Entered::Value(value) => {
                self.at = self.end_of(&value);
                Member::Value(value)
            }
        })
    }

    fn container_start(&self, after: usize, bracket: u8) -> usize {
        let rest = self.cursor.bytes().get(after..).unwrap_or_default();
        after + memchr::memchr(bracket, rest).map_or(0, |at| at + 1)
    }

    /// Behind a value, which is a piece of the document.
    fn end_of(&self, value: &Value<'a>) -> usize {
        let offset = value.raw.as_ptr() as usize - self.cursor.bytes().as_ptr() as usize;
        offset + value.raw.len() + usize::from(value.kind == ValueKind::String)
    }

    /// Counts what follows the document, which should be nothing.
    fn finish(&self, problems: &mut Problems) {
        let rest = self.cursor.bytes().get(self.at..).unwrap_or_default();
        if !rest.trim_ascii().is_empty() {
            problems.add_many(ProblemCode::UnreadBytes, rest.len() as u64, Some(self.at as u64), || None);
        }
    }

    /// Passes over the rest of a container that was opened.
    fn skip(&mut self) -> Result<(), Damage> {
        self.at = self.cursor.skip_rest()?;
        Ok(())
    }
}

/// A number that a member says, as text or plainly; what is none is counted.
fn number(value: &Member<'_>, places: i64, problems: &mut Problems) -> Option<u64> {
    let raw = match value {
        Member::Value(value) if matches!(value.kind, ValueKind::String | ValueKind::Scalar) => value.raw,
        _ => return None,
    };
    if raw == b"null" {
        return None;
    }
    let unreadable = |problems: &mut Problems| {
        let shown = String::from_utf8_lossy(&raw[..raw.len().min(40)]).into_owned();
        problems.add(ProblemCode::UnreadableMetric, None, || Some(shown));
        None
    };
    match parse_scaled(raw, places) {
        Decimal::Ns(number) if number >= 0 => Some(number.unsigned_abs()),
        Decimal::NotFinite => {
            problems.add(ProblemCode::NotANumber, None, || None);
            None
        }
        Decimal::Ns(_) | Decimal::TooLarge | Decimal::Invalid => unreadable(problems),
    }
}
