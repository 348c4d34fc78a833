//! Records as CUPTI lays them out, read by their beginning.
//!
//! From CUPTI 12.0 on a record only grows at its end: a newer library adds members behind the ones that are read here, so one decoder
//! reads them all, and only what was added later asks for the library's version. Offsets, in bytes (all numbers little-endian):
//!
//! ```text
//! kernel (10)   208 bytes in 12.0, 216 in 13.0, up to 248 later
//!   4 u8 cache  6 u16 registers  16 u64 start  24 end  40 u32 device  44 context  48 stream  52 grid[3]  64 block[3]
//!   76 static shared  80 dynamic shared  84 local a thread  92 correlation  104 name  120 u64 queued  128 submitted
//!   144 u64 graph node  156 u32 graph  168 u32 channel  172 channel type  176 cluster[3]
//! memcpy (1)    88 bytes, 96 from 12.8, 112 from 13.4
//!   4 u8 kind  5 source  6 destination  8 u64 bytes  16 start  24 end  32 u32 device  36 context  40 stream  44 correlation
//!   64 u64 graph node  72 u32 graph  76 channel  80 channel type
//! memset (2)    88 bytes, 104 later
//!   4 u32 value  8 u64 bytes  16 start  24 end  32 u32 device  36 context  40 stream  44 correlation  50 u16 memory kind
//!   64 u64 graph node  72 u32 graph  76 channel  80 channel type
//! peer copy (22)  96 bytes
//!   8 u64 bytes  16 start  24 end  32 u32 device  36 context  40 stream  44 source device  52 destination device  60 correlation
//!   72 u64 graph node  80 u32 graph  84 channel  88 channel type
//! API (4, 5)    40 bytes
//!   4 u32 function  8 u64 start  16 end  24 u32 process  28 thread  32 correlation  36 result
//! overhead (17) 40 bytes, 56 from 12.2
//!   4 u32 kind  8 object kind  12 object id (process, thread)  24 u64 start  32 end  40 u32 correlation (from 12.2)
//! synchronization (38)  40 bytes, 56 from 12.8
//!   4 u32 type  8 u64 start  16 end  24 u32 correlation  28 context  32 stream  36 event  40 u64 which record of it (from 12.8)
//! event (36)    24 bytes, 56 from 12.8
//!   4 u32 correlation  8 context  12 stream  16 event  48 u64 which record of it (from 12.8)
//! ```

use longpole_recording::{Api, EventRecord, Kernel, Memcpy, Memset, Overhead, PeerCopy, StringId, Sync};

/// Kinds of records that are asked for.
pub(crate) mod kind {
    pub(crate) const MEMCPY: u32 = 1;
    pub(crate) const MEMSET: u32 = 2;
    pub(crate) const DRIVER: u32 = 4;
    pub(crate) const RUNTIME: u32 = 5;
    pub(crate) const CONCURRENT_KERNEL: u32 = 10;
    pub(crate) const OVERHEAD: u32 = 17;
    pub(crate) const PEER_COPY: u32 = 22;
    pub(crate) const EVENT: u32 = 36;
    pub(crate) const SYNCHRONIZATION: u32 = 38;
}

/// CUPTI 12.2, whose overheads carry a correlation.
const VERSION_12_2: u32 = 20;

/// CUPTI 12.8, which tells the records of one event apart.
const VERSION_12_8: u32 = 26;

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE` and the like: a stream or an event that there is none of.
const NONE: u32 = u32::MAX;

/// Bytes of a record of a kind that must be there for it to be decoded; `None` for kinds that are not.
pub(crate) const fn least_bytes(kind: u32) -> Option<usize> {
    Some(match kind {
        kind::EVENT => 24,
        kind::CONCURRENT_KERNEL => 208,
        kind::MEMCPY | kind::MEMSET => 88,
        kind::PEER_COPY => 96,
        kind::DRIVER | kind::RUNTIME | kind::OVERHEAD | kind::SYNCHRONIZATION => 40,
        _ => return None,
    })
}

/// A record, decoded. The name of a kernel is an address in CUPTI's memory that is turned into a text by whoever writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Kernel(Kernel, u64),
    Memcpy(Memcpy),
    Memset(Memset),
    PeerCopy(PeerCopy),
    Api(Api),
    Overhead(Overhead),
    Sync(Sync),
    Event(EventRecord),
}

/// A number at an offset. What lies behind the bytes reads as zero; [`least_bytes`] has been checked before.
fn number<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(number(record, at))
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number(record, at))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(record, at))
}

/// The kind of a record: its first number.
pub(crate) fn kind_of(record: &[u8]) -> u32 {
    u32_at(record, 0)
}

/// The node and graph of work that a graph launched.
fn graph(record: &[u8], node: usize, graph: usize) -> (Option<u64>, Option<u32>) {
    let id = u64_at(record, node);
    if id == 0 { (None, None) } else { (Some(id), Some(u32_at(record, graph))) }
}

/// The hardware channel, which is given only when its type behind it is.
fn channel(record: &[u8], at: usize) -> Option<u32> {
    (u32_at(record, at + 4) != 0).then(|| u32_at(record, at))
}

/// Which record of an event is meant, in libraries that say so and where there is an event.
fn event_sync(record: &[u8], at: usize, version: u32) -> Option<u64> {
    (version >= VERSION_12_8).then(|| u64_at(record, at)).filter(|&id| id != u64::from(NONE) && id != u64::MAX)
}

/// Reads a record that has at least [`least_bytes`] of its kind.
pub(crate) fn decode(record: &[u8], version: u32) -> Option<Decoded> {
    Some(match kind_of(record) {
        kind::CONCURRENT_KERNEL => {
            let (graph_node, graph) = graph(record, 144, 156);
            let some = |time: u64| (time != 0).then_some(time);
            let kernel = Kernel {
                start: u64_at(record, 16),
                end: u64_at(record, 24),
                queued: some(u64_at(record, 120)),
                submitted: some(u64_at(record, 128)),
                device: u32_at(record, 40),
                context: u32_at(record, 44),
                stream: u32_at(record, 48),
                correlation: u32_at(record, 92),
                name: StringId::NONE,
                grid_x: u32_at(record, 52),
                grid_y: u32_at(record, 56),
                grid_z: u32_at(record, 60),
                block_x: u32_at(record, 64),
                block_y: u32_at(record, 68),
                block_z: u32_at(record, 72),
                cluster_x: u32_at(record, 176),
                cluster_y: u32_at(record, 180),
                cluster_z: u32_at(record, 184),
                registers: u32::from(u16_at(record, 6)),
                static_shared: u32_at(record, 76),
                dynamic_shared: u32_at(record, 80),
                local: u32_at(record, 84),
                graph_node,
                graph,
                channel: channel(record, 168),
            };
            Decoded::Kernel(kernel, u64_at(record, 104))
        }
        kind::MEMCPY => {
            let (graph_node, graph) = graph(record, 64, 72);
            let [kind, source, destination] = number(record, 4);
            Decoded::Memcpy(Memcpy {
                start: u64_at(record, 16),
                end: u64_at(record, 24),
                bytes: u64_at(record, 8),
                kind,
                source,
                destination,
                device: u32_at(record, 32),
                context: u32_at(record, 36),
                stream: u32_at(record, 40),
                correlation: u32_at(record, 44),
                graph_node,
                graph,
                channel: channel(record, 76),
            })
        }
        kind::MEMSET => {
            let (graph_node, graph) = graph(record, 64, 72);
            Decoded::Memset(Memset {
                start: u64_at(record, 16),
                end: u64_at(record, 24),
                bytes: u64_at(record, 8),
                value: u32_at(record, 4),
                memory: u16_at(record, 50).try_into().unwrap_or(u8::MAX),
                device: u32_at(record, 32),
                context: u32_at(record, 36),
                stream: u32_at(record, 40),
                correlation: u32_at(record, 44),
                graph_node,
                graph,
                channel: channel(record, 76),
            })
        }
        kind::PEER_COPY => {
            let (graph_node, graph) = graph(record, 72, 80);
            Decoded::PeerCopy(PeerCopy {
                start: u64_at(record, 16),
                end: u64_at(record, 24),
                bytes: u64_at(record, 8),
                device: u32_at(record, 32),
                context: u32_at(record, 36),
                stream: u32_at(record, 40),
                source_device: u32_at(record, 44),
                destination_device: u32_at(record, 52),
                correlation: u32_at(record, 60),
                graph_node,
                graph,
                channel: channel(record, 84),
            })
        }
        kind @ (kind::DRIVER | kind::RUNTIME) => Decoded::Api(Api {
            start: u64_at(record, 8),
            end: u64_at(record, 16),
            domain: if kind == kind::RUNTIME { Api::RUNTIME } else { Api::DRIVER },
            cbid: u32_at(record, 4),
            name: StringId::NONE,
            tid: u32_at(record, 28),
            correlation: u32_at(record, 32),
            result: u32_at(record, 36).cast_signed(),
        }),
        kind::OVERHEAD => {
            const OBJECT_THREAD: u32 = 2;
            let correlation = if version >= VERSION_12_2 { u32_at(record, 40) } else { 0 };
            Decoded::Overhead(Overhead {
                start: u64_at(record, 24),
                end: u64_at(record, 32),
                kind: u32_at(record, 4),
                tid: (u32_at(record, 8) == OBJECT_THREAD).then(|| u32_at(record, 16)),
                correlation: (correlation != 0).then_some(correlation),
            })
        }
        kind::SYNCHRONIZATION => {
            let some = |id: u32| (id != NONE).then_some(id);
            Decoded::Sync(Sync {
                start: u64_at(record, 8),
                end: u64_at(record, 16),
                kind: u32_at(record, 4).try_into().unwrap_or(u8::MAX),
                correlation: u32_at(record, 24),
                context: u32_at(record, 28),
                stream: some(u32_at(record, 32)),
                event: some(u32_at(record, 36)),
                event_sync: event_sync(record, 40, version),
            })
        }
        kind::EVENT => Decoded::Event(EventRecord {
            event: u32_at(record, 16),
            context: u32_at(record, 8),
            stream: u32_at(record, 12),
            correlation: u32_at(record, 4),
            event_sync: event_sync(record, 48, version),
        }),
        _ => return None,
    })
}
