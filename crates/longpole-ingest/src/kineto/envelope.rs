//! What surrounds the events: metadata before and after the event array, in any order.

use longpole_trace::{DeviceProperties, Interval, Ns, ProblemCode, Problems, Recorded, Tid, Versions};

use crate::json::{Cursor, Damage, Decimal, Entered, Key, Value, ValueKind, parse_decimal_ns, parse_i64, parse_u64, unescape};

/// What the metadata says, as far as anything uses it.
#[derive(Clone, Debug, Default)]
pub(super) struct Envelope {
    /// Absolute time of time stamp 0, in nanoseconds since 1970.
    pub(super) base_ns: Option<i64>,
    /// (device number, properties).
    pub(super) devices: Vec<(i64, DeviceProperties)>,
    /// Rank of this recording.
    pub(super) rank: Option<u32>,
    /// World size.
    pub(super) world_size: Option<u32>,
    /// Communication back end.
    pub(super) backend: Option<String>,
    /// Software versions.
    pub(super) versions: Versions,
    /// What was recorded.
    pub(super) recorded: Recorded,
    /// What the recording is about, if it is a part of a longer one.
    pub(super) part: Option<PartFacts>,
    /// When nothing was recorded, if it is cut out of a recording in windows.
    pub(super) unobserved: Vec<Interval>,
    /// What was lost of the trace that this one was made of, and how often; written by `longpole slice`.
    pub(super) lost: Option<Vec<(ProblemCode, u64)>>,
    /// The document is a bare array of events.
    pub(super) is_array: bool,
    /// `traceEvents` is something else than a list.
    pub(super) events_are_no_list: bool,
    /// Top-level keys seen, to tell the kind of a file that has no events; the first few only.
    pub(super) keys: Vec<String>,
    /// Trouble in the metadata.
    pub(super) problems: Problems,
}

/// What is said of the part of a longer recording that this one is about; written by `longpole slice`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartFacts {
    /// Process, thread, begin and end of host intervals, if it is not about all host events.
    pub(crate) host: Option<Vec<(i64, Tid, Ns, Ns)>>,
    /// The longer recording has device work.
    pub(crate) has_device_work: bool,
}

/// Where reading the head ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Inside the event array, from this offset on.
    Events(usize),
    /// The document has none; the offset behind it, if it ends.
    NoEvents(Option<usize>),
    /// More bytes are needed.
    Incomplete,
}

/// Where reading the members after the event array ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Behind the document.
    End(usize),
    /// Inside another event array.
    Events(usize),
    /// More bytes are needed.
    Incomplete,
    /// Not JSON here.
    Malformed(usize),
}

/// Where the members of a document led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Members {
    /// Into the event array, which begins here.
    Events(usize),
    /// To the offset behind the document.
    End(usize),
}

const EVENTS_KEY: &[u8] = b"\"traceEvents\"";

impl Envelope {
    /// Reads up to the first event.
    pub(super) fn read_head(&mut self, cursor: &mut Cursor<'_>) -> Head {
        match cursor.take_structural() {
            Some((at, b'[')) => {
                self.is_array = true;
                Head::Events(at + 1)
            }
            Some((_, b'{')) => match self.members(cursor) {
                Ok(Members::Events(at)) => Head::Events(at),
                Ok(Members::End(end)) => Head::NoEvents(Some(end)),
                Err(damage) => {
                    let damage = cursor.verdict(Err(damage)).err().unwrap_or(damage);
                    self.recover(cursor, damage)
                }
            },
            // An empty or blank input ends here too.
            Some(_) | None => Head::NoEvents(None),
        }
    }

    /// Reads the members after the event array, `cursor` standing behind it.
    pub(super) fn read_tail(&mut self, cursor: &mut Cursor<'_>) -> Tail {
        match self.members(cursor) {
            Ok(Members::End(end)) => Tail::End(end),
            Ok(Members::Events(at)) => Tail::Events(at),
            Err(damage) => match cursor.verdict(Err(damage)) {
                Err(Damage::Malformed(at)) => Tail::Malformed(at),
                _ => Tail::Incomplete,
            },
        }
    }

    /// Members of the top-level object, up to the event array or the object's end.
    fn members(&mut self, cursor: &mut Cursor<'_>) -> Result<Members, Damage> {
        loop {
            let (key, after) = match cursor.key()? {
                Key::Member(key, after) => (key, after),
                Key::End(end) => return cursor.verdict(Ok(end)).map(Members::End),
            };
            if key == b"traceEvents" {
                cursor.verdict(Ok(after))?;
                match cursor.enter_or_value(after)? {
                    Entered::Array(at) => return Ok(Members::Events(at)),
                    Entered::Object => {
                        cursor.skip_rest()?;
                    }
                    Entered::Value(_) => {}
                }
                self.events_are_no_list = true;
                continue;
            }
            if self.keys.len() < 32 {
                self.keys.push(unescape(key).0.chars().take(64).collect());
            }
            let value = cursor.value(after)?;
            self.take(key, value);
        }
    }

    /// Metadata with broken quotes hides the event array from a strict reader; its key is looked for in the bytes.
    fn recover(&mut self, cursor: &Cursor<'_>, damage: Damage) -> Head {
        let bytes = cursor.bytes();
        for at in memchr::memmem::find_iter(bytes, EVENTS_KEY) {
            let mut rest = at + EVENTS_KEY.len();
            for wanted in [b':', b'['] {
                rest += bytes[rest..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                if bytes.get(rest) == Some(&wanted) {
                    rest += 1;
                } else {
                    rest = bytes.len() + 1;
                    break;
                }
            }
            if rest <= bytes.len() {
                let offset = match damage {
                    Damage::Malformed(at) => at as u64,
                    Damage::Incomplete => 0,
                };
                self.problems.add(ProblemCode::MalformedEvent, Some(offset), || Some("in the metadata before the events".to_owned()));
                return Head::Events(rest);
            }
        }
        match damage {
            Damage::Incomplete => Head::Incomplete,
            Damage::Malformed(_) => Head::NoEvents(None),
        }
    }

    fn take(&mut self, key: &[u8], value: Value<'_>) {
        let raw = value.raw;
        let version = || Some(String::from_utf8_lossy(raw).into_owned()).filter(|_| value.kind == ValueKind::Scalar);
        match key {
            b"baseTimeNanoseconds" => self.base_ns = parse_i64(raw),
            b"record_shapes" => self.recorded.shapes |= is_on(raw),
            b"profile_memory" => self.recorded.memory |= is_on(raw),
            b"with_stack" => self.recorded.stacks |= is_on(raw),
            b"with_modules" => self.recorded.modules |= is_on(raw),
            b"cuda_runtime_version" => self.versions.cuda_runtime = cuda_version(raw),
            b"cuda_driver_version" => self.versions.cuda_driver = cuda_version(raw),
            b"cupti_version" => self.versions.cupti = version(),
            b"hip_runtime_version" => self.versions.hip_runtime = hip_version(raw),
            b"hip_driver_version" => self.versions.hip_driver = hip_version(raw),
            b"deviceProperties" | b"computeProperties" => self.devices = devices(raw),
            b"distributedInfo" => self.take_distributed(raw),
            b"longpole" => (self.part, self.lost, self.unobserved) = (part(raw), lost(raw), unobserved(raw)),
            _ => {}
        }
    }

    fn take_distributed(&mut self, raw: &[u8]) {
        for_members(raw, |key, value| match key {
            b"rank" => self.rank = parse_u64(value.raw).and_then(|v| u32::try_from(v).ok()),
            b"world_size" => self.world_size = parse_u64(value.raw).and_then(|v| u32::try_from(v).ok()),
            b"backend" if value.kind == ValueKind::String => self.backend = Some(unescape(value.raw).0.chars().take(64).collect()),
            _ => {}
        });
    }

    /// Adds what a later part of the same file says.
    pub(super) fn merge(&mut self, other: Self) {
        self.base_ns = other.base_ns.or(self.base_ns);
        if !other.devices.is_empty() {
            self.devices = other.devices;
        }
        self.rank = other.rank.or(self.rank);
        self.world_size = other.world_size.or(self.world_size);
        self.backend = other.backend.or(self.backend.take());
        self.part = other.part.or(self.part.take());
        self.unobserved.extend(other.unobserved);
        self.lost = other.lost.or(self.lost.take());
        let (mine, theirs) = (&mut self.versions, other.versions);
        mine.cuda_runtime = theirs.cuda_runtime.or(mine.cuda_runtime.take());
        mine.cuda_driver = theirs.cuda_driver.or(mine.cuda_driver.take());
        mine.cupti = theirs.cupti.or(mine.cupti.take());
        mine.hip_runtime = theirs.hip_runtime.or(mine.hip_runtime.take());
        mine.hip_driver = theirs.hip_driver.or(mine.hip_driver.take());
        self.recorded.shapes |= other.recorded.shapes;
        self.recorded.memory |= other.recorded.memory;
        self.recorded.stacks |= other.recorded.stacks;
        self.recorded.modules |= other.recorded.modules;
        self.is_array |= other.is_array;
        self.events_are_no_list |= other.events_are_no_list;
        self.keys.extend(other.keys);
        self.problems.extend(other.problems);
    }
}

fn is_on(raw: &[u8]) -> bool {
    matches!(raw, b"1" | b"true")
}

/// CUDA packs versions as 1000 * major + 10 * minor.
fn cuda_version(raw: &[u8]) -> Option<String> {
    let packed = parse_u64(raw)?;
    Some(format!("{}.{}", packed / 1000, packed % 1000 / 10))
}

/// HIP packs versions as 10,000,000 * major + 100,000 * minor + patch.
fn hip_version(raw: &[u8]) -> Option<String> {
    let packed = parse_u64(raw)?;
    Some(format!("{}.{}", packed / 10_000_000, packed / 100_000 % 100))
}

/// Calls `each` for the members of a raw object; stops silently at damage (the raw value was balanced already).
fn for_members<'a>(raw: &'a [u8], mut each: impl FnMut(&[u8], Value<'a>)) {
    let mut cursor = Cursor::new(raw, Vec::new());
    if !matches!(cursor.take_structural(), Some((_, b'{'))) {
        return;
    }
    while let Ok(Key::Member(key, after)) = cursor.key() {
        let Ok(value) = cursor.value(after) else { return };
        each(key, value);
    }
}

/// Intervals a part may have at most: steps of a range, on each thread that worked for them.
const MAX_INTERVALS: usize = 1 << 20;

fn part(raw: &[u8]) -> Option<PartFacts> {
    let (mut host, mut has_device_work) = (None, false);
    for_members(raw, |key, value| match key {
        b"host" => host = Some(intervals(value.raw)),
        b"has_device_work" => has_device_work = is_on(value.raw),
        _ => {}
    });
    (host.is_some() || has_device_work).then_some(PartFacts { host, has_device_work })
}

/// Stretches in which nothing was recorded.
fn unobserved(raw: &[u8]) -> Vec<Interval> {
    let mut out = Vec::new();
    for_members(raw, |key, value| {
        if key == b"unobserved" {
            out = stretches(value.raw).into_iter().map(|(_, _, start, end)| Interval { start, end }).collect();
        }
    });
    out
}

/// Losses that are known by their code. A loss that is counted anew from what a slice holds is not taken over.
fn lost(raw: &[u8]) -> Option<Vec<(ProblemCode, u64)>> {
    let mut lost: Vec<(ProblemCode, u64)> = Vec::new();
    for_members(raw, |key, value| {
        if key != b"lost" {
            return;
        }
        for_members(value.raw, |key, value| {
            let code = ProblemCode::ALL.iter().copied().find(|code| code.describe().0.as_bytes() == key && code.is_kept_by_parts());
            // A count that cannot be read is still a loss.
            let count = parse_u64(value.raw).unwrap_or(1).clamp(1, u64::from(u32::MAX));
            if let Some(code) = code.filter(|code| lost.iter().all(|(known, _)| known != code)) {
                lost.push((code, count));
            }
        });
    });
    (!lost.is_empty()).then_some(lost)
}

/// The intervals of threads that can be read; one that cannot holds nothing.
fn intervals(raw: &[u8]) -> Vec<(i64, Tid, Ns, Ns)> {
    stretches(raw).into_iter().filter_map(|(pid, tid, from, to)| Some((pid?, tid?, from, to))).collect()
}

/// A thread, as far as one is named, and an interval.
type Stretch = (Option<i64>, Option<Tid>, Ns, Ns);

/// The intervals that can be read, of a thread or of all.
fn stretches(raw: &[u8]) -> Vec<Stretch> {
    let mut out = Vec::new();
    let mut cursor = Cursor::new(raw, Vec::new());
    if !matches!(cursor.take_structural(), Some((_, b'['))) {
        return out;
    }
    while let Some((_, b'{')) = cursor.take_structural() {
        let (mut pid, mut tid, mut from, mut to) = (None, None, None, None);
        loop {
            let (key, after) = match cursor.key() {
                Ok(Key::Member(key, after)) => (key, after),
                Ok(Key::End(_)) => break,
                Err(_) => return out,
            };
            let Ok(value) = cursor.value(after) else { return out };
            let time = || if let Decimal::Ns(ns) = parse_decimal_ns(value.raw) { Some(Ns(ns)) } else { None };
            match key {
                b"pid" => pid = parse_i64(value.raw),
                b"tid" => tid = Some(parse_i64(value.raw).map_or_else(|| Tid::Text(unescape(value.raw).0.into_owned()), Tid::Number)),
                b"from" => from = time(),
                b"to" => to = time(),
                _ => {}
            }
        }
        if let (Some(from), Some(to)) = (from, to) {
            out.push((pid, tid, from, to));
        }
        if out.len() == MAX_INTERVALS {
            break;
        }
    }
    out
}

/// Devices a trace may describe at most; real machines have 16.
const MAX_DEVICES: usize = 1024;

fn devices(raw: &[u8]) -> Vec<(i64, DeviceProperties)> {
    let mut out = Vec::new();
    let mut cursor = Cursor::new(raw, Vec::new());
    if !matches!(cursor.take_structural(), Some((_, b'['))) {
        return out;
    }
    while let Some((_, b'{')) = cursor.take_structural() {
        let mut id = out.len() as i64;
        let mut device = DeviceProperties::default();
        let (mut major, mut minor) = (None, None);
        loop {
            let (key, after) = match cursor.key() {
                Ok(Key::Member(key, after)) => (key, after),
                Ok(Key::End(_)) => break,
                Err(_) => return out,
            };
            let Ok(value) = cursor.value(after) else { return out };
            let number = || parse_u64(value.raw);
            let small = || number().and_then(|v| u32::try_from(v).ok());
            match key {
                b"id" => id = parse_i64(value.raw).unwrap_or(id),
                b"name" => device.name = Some(unescape(value.raw).0.chars().take(256).collect()),
                b"totalGlobalMem" => device.memory_bytes = number(),
                b"numSms" | b"multiProcessorCount" => device.sm_count = small(),
                b"computeMajor" => major = small(),
                b"computeMinor" => minor = small(),
                b"maxThreadsPerMultiprocessor" | b"maxThreadsPerMultiProcessor" => device.max_threads_per_sm = small(),
                b"regsPerMultiprocessor" => device.registers_per_sm = small(),
                b"sharedMemPerMultiprocessor" | b"maxSharedMemoryPerMultiProcessor" => device.shared_bytes_per_sm = number(),
                b"warpSize" => device.warp_size = small(),
                _ => {}
            }
        }
        device.compute_capability = major.zip(minor);
        out.push((id, device));
        if out.len() == MAX_DEVICES {
            break;
        }
    }
    out
}
