//! One event: its members picked out of the JSON, in any order.

use super::category::Category;
use crate::json::{Cursor, Damage, Entered, Key, Value, parse_i64, parse_u64};

/// The members of an event that anything uses. Spans point into the segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// First byte of `ph`; 0 when absent.
    pub(super) phase: u8,
    /// Category, `Unknown` when absent.
    pub(super) category: Option<Category>,
    /// Raw category, for reports about unknown ones.
    pub(super) cat: &'a [u8],
    /// Raw name.
    pub(super) name: &'a [u8],
    /// Process, as written.
    pub(super) pid: Option<Value<'a>>,
    /// Thread, as written.
    pub(super) tid: Option<Value<'a>>,
    /// Time stamp, as written.
    pub(super) ts: Option<&'a [u8]>,
    /// Duration, as written.
    pub(super) dur: Option<&'a [u8]>,
    /// Arguments.
    pub(super) args: Args<'a>,
    /// Some argument may be set.
    has_args: bool,
}

/// The arguments that anything uses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Args<'a> {
    pub(super) external_id: Option<u64>,
    pub(super) correlation: Option<u64>,
    pub(super) device: Option<i64>,
    pub(super) context: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) registers: Option<u32>,
    pub(super) shared_bytes: Option<u32>,
    pub(super) graph: Option<u64>,
    pub(super) graph_node: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) copy_kind: Option<&'a [u8]>,
    pub(super) shapes: Option<&'a [u8]>,
    pub(super) types: Option<&'a [u8]>,
    pub(super) memory_bytes: Option<i64>,
    pub(super) memory_device_type: Option<i64>,
    pub(super) memory_device: Option<i64>,
    pub(super) total_allocated: Option<u64>,
    pub(super) total_reserved: Option<u64>,
    pub(super) label: Option<&'a [u8]>,
}

impl Event<'_> {
    /// Forgets the last event. The arguments are many, and most events set few or none: they are reset only when used.
    #[inline]
    fn reset(&mut self) {
        self.phase = 0;
        self.category = None;
        self.cat = b"";
        self.name = b"";
        self.pid = None;
        self.tid = None;
        self.ts = None;
        self.dur = None;
        if self.has_args {
            self.args = Args::default();
            self.has_args = false;
        }
    }
}

/// Reads the event whose opening brace was taken into `event`; the offset behind its closing brace.
#[inline]
pub(super) fn read<'a>(cursor: &mut Cursor<'a>, event: &mut Event<'a>) -> Result<usize, Damage> {
    event.reset();
    let end = read_members(cursor, event);
    cursor.verdict(end)
}

#[inline]
fn read_members<'a>(cursor: &mut Cursor<'a>, event: &mut Event<'a>) -> Result<usize, Damage> {
    loop {
        let (key, after) = match cursor.key()? {
            Key::Member(key, after) => (key, after),
            Key::End(end) => return Ok(end),
        };
        match key.len() {
            2 if key == b"ph" => {
                event.phase = cursor.value(after)?.raw.first().copied().unwrap_or(0);
                if matches!(event.phase, b's' | b't' | b'f') {
                    // Flow arrows repeat what correlation says.
                    return cursor.skip_rest();
                }
            }
            2 if key == b"ts" => event.ts = Some(cursor.value(after)?.raw),
            3 => match key {
                b"cat" => {
                    event.cat = cursor.value(after)?.raw;
                    event.category = Some(Category::of(event.cat));
                }
                b"pid" => event.pid = Some(cursor.value(after)?),
                b"tid" => event.tid = Some(cursor.value(after)?),
                b"dur" => event.dur = Some(cursor.value(after)?.raw),
                _ => cursor.skip_value(after)?,
            },
            4 if key == b"name" => event.name = cursor.value(after)?.raw,
            4 if key == b"args" => {
                if event.category.is_some_and(Category::ignores_args) {
                    cursor.skip_value(after)?;
                } else if cursor.enter_or_value(after)? == Entered::Object {
                    event.has_args = true;
                    read_args(cursor, &mut event.args)?;
                }
            }
            _ => cursor.skip_value(after)?,
        }
    }
}

fn read_args<'a>(cursor: &mut Cursor<'a>, args: &mut Args<'a>) -> Result<(), Damage> {
    loop {
        let (key, after) = match cursor.key()? {
            Key::Member(key, after) => (key, after),
            Key::End(_) => return Ok(()),
        };
        macro_rules! raw {
            () => {
                cursor.value(after)?.raw
            };
        }
        match key.len() {
            4 => match key {
                b"grid" => args.grid = triple(raw!()),
                b"name" => args.label = Some(raw!()),
                b"kind" => args.copy_kind = Some(raw!()),
                _ => cursor.skip_value(after)?,
            },
            5 => match key {
                b"block" => args.block = triple(raw!()),
                b"bytes" => args.bytes = parse_u64(raw!()),
                b"Bytes" => args.memory_bytes = parse_i64(raw!()),
                _ => cursor.skip_value(after)?,
            },
            6 => match key {
                b"device" => args.device = parse_i64(raw!()),
                b"stream" => args.stream = parse_i64(raw!()),
                b"labels" => args.label = Some(raw!()),
                _ => cursor.skip_value(after)?,
            },
            7 if key == b"context" => args.context = parse_i64(raw!()),
            8 if key == b"graph id" => args.graph = parse_u64(raw!()).filter(|id| *id != 0),
            9 if key == b"Device Id" => args.memory_device = parse_i64(raw!()),
            10 => match key {
                b"Input Dims" | b"Input dims" => args.shapes = Some(raw!()),
                b"Input type" => args.types = Some(raw!()),
                _ => cursor.skip_value(after)?,
            },
            11 => match key {
                b"External id" | b"external id" => args.external_id = parse_u64(raw!()),
                b"correlation" => args.correlation = parse_u64(raw!()),
                b"Device Type" => args.memory_device_type = parse_i64(raw!()),
                _ => cursor.skip_value(after)?,
            },
            13 => match key {
                b"shared memory" => args.shared_bytes = parse_u64(raw!()).and_then(|v| u32::try_from(v).ok()),
                b"graph node id" => args.graph_node = parse_u64(raw!()).filter(|id| *id != 0),
                _ => cursor.skip_value(after)?,
            },
            14 if key == b"Total Reserved" => args.total_reserved = parse_u64(raw!()),
            15 if key == b"Total Allocated" => args.total_allocated = parse_u64(raw!()),
            20 if key == b"registers per thread" => args.registers = parse_u64(raw!()).and_then(|v| u32::try_from(v).ok()),
            _ => cursor.skip_value(after)?,
        }
    }
}

/// `[x, y, z]`; also the text `"[x, y, z]"` that some writers quote.
fn triple(raw: &[u8]) -> Option<[u32; 3]> {
    let inner = raw.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut parts = inner.split(|b| *b == b',').map(|part| parse_u64(part.trim_ascii()).and_then(|v| u32::try_from(v).ok()));
    let triple = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(triple)
}

/// A process or thread id: a number, quoted or not.
pub(super) fn number(value: Option<Value<'_>>) -> Option<i64> {
    parse_i64(value?.raw)
}

/// The number at the end of a 2021 stream name (`stream 7`), or the number itself.
pub(super) fn stream_number(value: Option<Value<'_>>) -> Option<i64> {
    let raw = value?.raw.trim_ascii();
    parse_i64(raw).or_else(|| parse_i64(raw.rsplit(|b| *b == b' ').next()?))
}
