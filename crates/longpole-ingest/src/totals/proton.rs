//! Trees of Triton's Proton: what `proton.finalize()` writes (`.hatchet`), and what `proton-viewer` reads.
//!
//! An array: the root of a tree, and what the devices are.
//!
//! ```text
//! [ { "children": [ NODE, ... ], "frame": { "name": "ROOT", "type": "function" }, "metrics": { "count": 0, "time (ns)": 0 } },
//!   { "CUDA": { "0": { "arch": "90", "bus_width": 6144, "clock_rate": 1980000, "memory_clock_rate": 3201000, "num_sms": 132 } } } ]
//! ```
//!
//! The metrics of a node are its own: `time (ns)`, `count`, `device_id` and `device_type` stand at kernels, what the program declares
//! (`bytes`, `flops8`, `flops16`, ..., `cpu_time (ns)`) at the scope or kernel it is about, `cycles` at regions inside kernels. The root has
//! zeros. Clocks are in kHz, the bus in bits. Names of metrics are matched without case, spaces and underscores, which versions write differently.

use hashbrown::HashMap;
use longpole_trace::{Aggregate, AggregateDetail, AggregateId, AggregateKind, DeviceProperties, FlopWidth, Ns, ProblemCode, Problems};
use longpole_trace::{StrId, TraceBuilder};

use super::{Document, Item, Member, Walk, number};
use crate::formats::{Reading, Report, Source};
use crate::json::{Damage, ValueKind, unescape};
use crate::kineto::FileFacts;

const RECORD: &str = "record one with `proton.start(name)` ... `proton.finalize()` around the kernels";

/// Nodes kept at most, which bounds memory; the rest of a larger tree is cut off.
const MOST_NODES: usize = 1 << 22;
/// Devices described at most; a machine has a few dozen.
const MOST_DEVICES: usize = 4096;
/// Of a name that is not in the file: the members before it are, its own are behind a cut.
const LOST: &str = "(name not read)";

/// A node, its own numbers.
#[derive(Default)]
struct Node {
    parent: Option<u32>,
    name: Option<StrId>,
    is_open: bool,
    has_children: bool,
    count: Option<u64>,
    time: Option<Ns>,
    device: Option<i64>,
    /// What few nodes have.
    detail: Option<Box<AggregateDetail>>,
}

impl Node {
    fn detail(&mut self) -> &mut AggregateDetail {
        self.detail.get_or_insert_default()
    }

    fn says_nothing(&self) -> bool {
        self.name.is_none()
            && !self.has_children
            && self.count.is_none()
            && self.time.is_none()
            && self.device.is_none()
            && self.detail.is_none()
    }

    /// Zeros stand where a scope has nothing of its own.
    fn clear_zeros(&mut self) {
        if self.device.is_none() && self.time.is_none_or(|time| time == Ns::ZERO) && self.count.is_none_or(|count| count == 0) {
            (self.time, self.count) = (None, None);
        }
        let is_root = self.parent.is_none();
        if let Some(detail) = self.detail.as_mut().filter(|_| is_root) {
            let zero = |value: &mut Option<u64>| *value = value.filter(|&value| value > 0);
            [&mut detail.bytes, &mut detail.cycles].into_iter().chain(&mut detail.flops).for_each(zero);
        }
        self.detail.take_if(|detail| **detail == AggregateDetail::default());
    }

    fn kind(&self) -> AggregateKind {
        let counts = self.time.is_some() || self.device.is_some() || self.detail.as_ref().is_some_and(|detail| detail.cycles.is_some());
        if counts { AggregateKind::Kernel } else { AggregateKind::Scope }
    }
}

/// Where the walk stands.
#[derive(Clone, Copy)]
enum Level {
    /// In a node.
    Node(u32),
    /// In the list of the nodes inside a node.
    Children(u32),
}

struct Tree<'b> {
    builder: &'b mut TraceBuilder,
    nodes: Vec<Node>,
    levels: Vec<Level>,
    devices: Vec<(i64, DeviceProperties)>,
    problems: Problems,
}

/// Reads a tree into `builder`, as its recording `rank`.
pub(crate) fn read(
    source: Source<'_>,
    _reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> std::io::Result<Vec<FileFacts>> {
    let Document { bytes, problems } = Document::read(source, report)?;
    let marks = builder.marks();
    let mut tree = Tree { builder, nodes: Vec::new(), levels: Vec::new(), devices: Vec::new(), problems };
    if let Err(damage) = tree.walk(&bytes) {
        Document::note(&mut tree.problems, damage, bytes.len());
        tree.close_early();
    }
    let events = tree.nodes.len() as u64;
    let (devices, problems) = tree.add_rows(rank);
    let unusable = Some(("a Proton profile without a readable kernel or scope".to_owned(), RECORD));
    Ok(vec![FileFacts { recording: rank, marks, devices, events, bytes: bytes.len() as u64, problems, unusable, ..FileFacts::default() }])
}

impl Tree<'_> {
    fn walk(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        let mut walk = Walk::new(bytes)?;
        loop {
            match self.levels.last().copied() {
                None => {
                    if self.element(&mut walk, None)? {
                        walk.finish(&mut self.problems);
                        return Ok(());
                    }
                }
                Some(Level::Children(node)) => {
                    if self.element(&mut walk, Some(node))? {
                        self.levels.pop();
                    }
                }
                Some(Level::Node(node)) => match walk.key()? {
                    Some((key, after)) => self.member(&mut walk, node, key, after)?,
                    None => self.close(node),
                },
            }
        }
    }

    /// The next element of a list of nodes; true at its end.
    fn element(&mut self, walk: &mut Walk<'_>, parent: Option<u32>) -> Result<bool, Damage> {
        match walk.item()? {
            Item::End => return Ok(true),
            Item::Object => {
                if self.nodes.len() == MOST_NODES {
                    let most = "only the first 4,194,304 nodes are read".to_owned();
                    self.problems.add(ProblemCode::Truncated, Some(walk.at as u64), || Some(most));
                    return Err(Damage::Incomplete);
                }
                let node = self.nodes.len() as u32;
                if let Some(parent) = parent {
                    self.nodes[parent as usize].has_children = true;
                }
                self.nodes.push(Node { parent, is_open: true, ..Node::default() });
                self.levels.push(Level::Node(node));
            }
            Item::Array => {
                walk.skip()?;
                self.unreadable();
            }
            Item::Text => self.unreadable(),
        }
        Ok(false)
    }

    fn unreadable(&mut self) {
        self.problems.add(ProblemCode::UnreadableMetric, None, || None);
    }

    fn member(&mut self, walk: &mut Walk<'_>, node: u32, key: &[u8], after: usize) -> Result<(), Damage> {
        let value = walk.member(after)?;
        let is_top = self.nodes[node as usize].parent.is_none();
        match (key, value) {
            (b"children", Member::Array) => self.levels.push(Level::Children(node)),
            (b"frame", Member::Object) => self.frame(walk, node)?,
            (b"metrics", Member::Object) => self.metrics(walk, node)?,
            (b"children" | b"frame" | b"metrics", Member::Value(value)) if value.raw == b"null" => {}
            (b"children" | b"frame" | b"metrics", other) => {
                self.unreadable();
                if matches!(other, Member::Object | Member::Array) {
                    walk.skip()?;
                }
            }
            (_, Member::Object) if is_top => self.device_kind(walk, key)?,
            (_, Member::Object | Member::Array) => walk.skip()?,
            (_, Member::Value(_)) => {}
        }
        Ok(())
    }

    fn close(&mut self, node: u32) {
        self.levels.pop();
        self.nodes[node as usize].is_open = false;
        // What describes the devices is an element like the root.
        if self.nodes.len() == node as usize + 1 && self.nodes[node as usize].says_nothing() {
            self.nodes.pop();
        }
    }

    /// Leaves out what was being read when the document ended: the last nodes, of which nothing is known yet.
    fn close_early(&mut self) {
        while self.nodes.pop_if(|node| node.is_open && node.name.is_none() && node.time.is_none() && node.detail.is_none()).is_some() {}
    }

    fn frame(&mut self, walk: &mut Walk<'_>, node: u32) -> Result<(), Damage> {
        while let Some((key, after)) = walk.key()? {
            match walk.member(after)? {
                Member::Object | Member::Array => walk.skip()?,
                Member::Value(value) if key == b"name" && value.kind == ValueKind::String => {
                    let (text, replaced) = unescape(value.raw);
                    if replaced {
                        self.problems.add(ProblemCode::BadUtf8, None, || None);
                    }
                    self.nodes[node as usize].name = Some(self.builder.trace_mut().strings.intern(&text));
                }
                Member::Value(_) if key == b"name" => self.unreadable(),
                Member::Value(_) => {}
            }
        }
        Ok(())
    }

    fn metrics(&mut self, walk: &mut Walk<'_>, node: u32) -> Result<(), Damage> {
        while let Some((key, after)) = walk.key()? {
            let value = walk.member(after)?;
            let metric = Metric::named(key);
            if matches!(value, Member::Object | Member::Array) {
                walk.skip()?;
                // Lists of numbers are the program's own metrics, which no table shows.
                if !matches!(metric, Metric::Other) {
                    self.unreadable();
                }
                continue;
            }
            let Some(places) = metric.places() else { continue };
            let number = number(&value, places, &mut self.problems);
            let node = &mut self.nodes[node as usize];
            let time = number.map(|number| Ns(i64::try_from(number).unwrap_or(i64::MAX)));
            match metric {
                Metric::Time(_) => node.time = time,
                Metric::Count => node.count = number,
                Metric::Device => node.device = number.and_then(|number| i64::try_from(number).ok()),
                Metric::HostTime(_) => node.detail().host_ns = time,
                Metric::Bytes => node.detail().bytes = number,
                Metric::Cycles => node.detail().cycles = number,
                Metric::Flops(width) => node.detail().flops[width as usize] = number,
                Metric::Other => {}
            }
        }
        Ok(())
    }

    /// Devices of one kind (`CUDA`, `HIP`), by their number.
    fn device_kind(&mut self, walk: &mut Walk<'_>, kind: &[u8]) -> Result<(), Damage> {
        while let Some((key, after)) = walk.key()? {
            match walk.member(after)? {
                Member::Object => {
                    let described = self.device(walk, kind)?;
                    let ordinal = crate::json::parse_i64(key);
                    if let Some(ordinal) = ordinal.filter(|_| self.devices.len() < MOST_DEVICES) {
                        self.devices.push((ordinal, described));
                    }
                }
                Member::Array => walk.skip()?,
                Member::Value(_) => {}
            }
        }
        Ok(())
    }

    fn device(&mut self, walk: &mut Walk<'_>, kind: &[u8]) -> Result<DeviceProperties, Damage> {
        let (mut arch, mut sms, mut bus_bits, mut clock_khz) = (None, None, None, None);
        while let Some((key, after)) = walk.key()? {
            let value = walk.member(after)?;
            match (key, &value) {
                (_, Member::Object | Member::Array) => walk.skip()?,
                (b"arch", Member::Value(value)) => arch = Some(String::from_utf8_lossy(&value.raw[..value.raw.len().min(32)]).into_owned()),
                (b"num_sms", _) => sms = number(&value, 0, &mut self.problems).and_then(|count| u32::try_from(count).ok()),
                (b"bus_width", _) => bus_bits = number(&value, 0, &mut self.problems),
                (b"memory_clock_rate", _) => clock_khz = number(&value, 0, &mut self.problems),
                _ => {}
            }
        }
        let is_amd = kind == b"HIP";
        let name = arch.as_ref().map(|arch| if is_amd { format!("AMD {arch}") } else { format!("NVIDIA sm_{arch}") });
        let compute = arch.as_ref().filter(|_| !is_amd).and_then(|arch| arch.parse::<u32>().ok()).map(|arch| (arch / 10, arch % 10));
        let peak =
            bus_bits.zip(clock_khz).and_then(|(bits, khz)| bandwidth(bits, khz, transfers_a_clock(arch.as_deref().unwrap_or_default())));
        Ok(DeviceProperties {
            name,
            sm_count: sms.filter(|&count| count > 0),
            compute_capability: compute,
            peak_memory_bytes_per_s: peak,
            ..DeviceProperties::default()
        })
    }

    /// Rows of the nodes, in their order, which has parents before what is inside them. The root is no row: it has nothing of its own.
    fn add_rows(mut self, rank: u32) -> (Vec<(i64, DeviceProperties)>, Problems) {
        let (lost, root) = {
            let strings = &mut self.builder.trace_mut().strings;
            (strings.intern(LOST), strings.intern("ROOT"))
        };
        let mut row_of: Vec<Option<AggregateId>> = Vec::with_capacity(self.nodes.len());
        let mut devices = HashMap::new();
        let mut has_time = false;
        for node in &mut self.nodes {
            node.clear_zeros();
            let parent = node.parent.and_then(|parent| row_of[parent as usize]);
            let kind = node.kind();
            let is_root = node.parent.is_none() && node.name.is_none_or(|name| name == root);
            if is_root && kind == AggregateKind::Scope && node.detail.is_none() {
                row_of.push(None);
                continue;
            }
            has_time |= node.time.is_some();
            let builder = &mut *self.builder;
            let device = node.device.map(|ordinal| *devices.entry(ordinal).or_insert_with(|| builder.device(rank, ordinal)));
            row_of.push(Some(builder.push_aggregate(Aggregate {
                kind,
                name: node.name.unwrap_or(lost),
                rank,
                parent,
                count: node.count,
                device_ns: node.time,
                device,
                detail: node.detail.as_deref().copied().unwrap_or_default(),
            })));
        }
        if !has_time && self.nodes.iter().any(|node| node.detail.as_ref().is_some_and(|detail| detail.cycles.is_some())) {
            self.problems.add(ProblemCode::CyclesOnly, None, || None);
        }
        (self.devices, self.problems)
    }
}

/// What a metric is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Metric {
    /// Device time, in a unit of so many decimal places of seconds before nanoseconds.
    Time(i64),
    HostTime(i64),
    Count,
    Device,
    Bytes,
    Cycles,
    Flops(FlopWidth),
    Other,
}

impl Metric {
    fn named(name: &[u8]) -> Self {
        // Longer names are the program's own.
        let mut buffer = [0; 24];
        let mut length = 0;
        for byte in name.iter().filter(|byte| !matches!(byte, b' ' | b'_')) {
            let Some(slot) = buffer.get_mut(length) else { return Self::Other };
            *slot = byte.to_ascii_lowercase();
            length += 1;
        }
        let places = |unit: &[u8]| match unit {
            b"(ns)" => Some(0),
            b"(us)" => Some(3),
            b"(ms)" => Some(6),
            b"(s)" => Some(9),
            _ => None,
        };
        match &buffer[..length] {
            b"count" => Self::Count,
            b"deviceid" => Self::Device,
            b"bytes" => Self::Bytes,
            b"cycles" => Self::Cycles,
            b"flops" => Self::Flops(FlopWidth::Unknown),
            b"flops4" => Self::Flops(FlopWidth::Bits4),
            b"flops8" => Self::Flops(FlopWidth::Bits8),
            b"flops16" => Self::Flops(FlopWidth::Bits16),
            b"flops32" => Self::Flops(FlopWidth::Bits32),
            b"flops64" => Self::Flops(FlopWidth::Bits64),
            name => {
                let time = name.strip_prefix(b"time").and_then(places).map(Self::Time);
                time.or_else(|| name.strip_prefix(b"cputime").and_then(places).map(Self::HostTime)).unwrap_or(Self::Other)
            }
        }
    }

    /// Decimal places to shift its number by; absent for what is not read.
    const fn places(self) -> Option<i64> {
        match self {
            Self::Time(places) | Self::HostTime(places) => Some(places),
            Self::Other => None,
            _ => Some(0),
        }
    }
}

/// Transfers on each line of the bus in a clock as drivers report it: two, and four for the HBM3 of AMD's MI300 and MI350, of which the
/// driver says half the clock (MI300X: 8,192 bits at 1.3 GHz are 5.3 TB/s by AMD's data sheet).
fn transfers_a_clock(arch: &str) -> u64 {
    if arch.starts_with("gfx94") || arch.starts_with("gfx95") { 4 } else { 2 }
}

/// Bytes a second of a bus of so many bits at so many kHz.
fn bandwidth(bits: u64, khz: u64, transfers: u64) -> Option<u64> {
    let rate = bits.checked_mul(khz)?.checked_mul(1000 * transfers)? / 8;
    Some(rate).filter(|&rate| rate > 0 && rate < 1_000_000_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metrics_are_known_in_every_spelling() {
        assert!(Metric::named(b"time (ns)") == Metric::Time(0) && Metric::named(b"Time (ns)") == Metric::Time(0));
        assert!(Metric::named(b"time (ms)") == Metric::Time(6) && Metric::named(b"cpu_time (ns)") == Metric::HostTime(0));
        assert!(Metric::named(b"DeviceId") == Metric::Device && Metric::named(b"device_id") == Metric::Device);
        assert!(Metric::named(b"flops16") == Metric::Flops(FlopWidth::Bits16) && Metric::named(b"flops128") == Metric::Other);
        assert!(Metric::named(b"time") == Metric::Other && Metric::named(b"a name of the program's own choice") == Metric::Other);
    }

    #[test]
    fn bandwidth_follows_from_clock_and_bus() {
        assert_eq!(bandwidth(5120, 2_619_000, transfers_a_clock("90")), Some(3_352_320_000_000), "H100 SXM: 3.35 TB/s");
        assert_eq!(bandwidth(384, 10_501_000, transfers_a_clock("89")), Some(1_008_096_000_000), "RTX 4090: 1,008 GB/s");
        assert_eq!(bandwidth(8192, 1_300_000, transfers_a_clock("gfx942")), Some(5_324_800_000_000), "MI300X: 5.3 TB/s");
        assert_eq!((bandwidth(0, 5, 2), bandwidth(u64::MAX, u64::MAX, 2)), (None, None));
    }
}
