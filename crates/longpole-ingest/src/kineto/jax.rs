//! Chrome traces of XLA's profiler (JAX, TensorFlow): `*.trace.json.gz` beside an `.xplane.pb`.
//!
//! Facts, read in XLA's own converter: a process is a device (`/device:GPU:0`, its number one less than the pid) or the host
//! (`/host:CPU`, pid 701), a thread of a device is a stream or a line that was derived from the streams (`XLA Modules`, `Steps`, ...).
//! All arguments are strings. Device work has `kernel_details`, `memcpy_details` or `memset_details`; the driver calls that launched it
//! are host events with the same `correlation_id`, and have a `device_id`, which device work has not. Names of processes and threads come
//! first; an empty object comes last. Times are picoseconds printed as microseconds with 17 digits, so they are rounded to whole
//! nanoseconds.
//!
//! Operators are the HLO operations that device work names (`hlo_module`, `hlo_op`); see [`Jax::operators`].

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityKind, HostOp, LaunchConfig, MemcpyKind, Ns, StrId, ThreadId, Transfer};

use super::arguments::Args;
use super::dialect::values_of;
use crate::json::{Tokens, parse_u64};

/// Whether a document that begins so is XLA's.
pub(super) fn begins(head: &[u8]) -> bool {
    let is_process = |name: &[u8]| name == b"/host:CPU" || name.starts_with(b"/device:");
    memchr::memmem::find(head, b"\"highres-ticks\"").is_some() || values_of(head, b"\"name\"").any(is_process)
}

/// XLA writes the first million events (five million since 2025), or as many as an environment variable says, which is a round number
/// too.
pub(super) const EVENT_LIMIT: u64 = 1_000_000;

/// What the events of XLA say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extras<'a> {
    /// What the device did.
    pub(super) work: Option<Work<'a>>,
    /// It is a call on the host.
    pub(super) is_call: bool,
    /// The HLO operation, and the module (the jitted function) it is of.
    pub(super) hlo_op: Option<&'a [u8]>,
    pub(super) hlo_module: Option<&'a [u8]>,
}

/// Work of a device, with its details as written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work<'a> {
    Kernel(&'a [u8]),
    Memcpy(&'a [u8]),
    Memset(&'a [u8]),
    /// A graph launch, recorded as a whole.
    Graph,
}

/// Takes one argument.
pub(super) fn read_arg<'a>(
    tokens: &mut Tokens<'a>,
    colon: usize,
    key_end: usize,
    args: &mut Args<'a>,
    extras: &mut super::dialect::Extras<'a>,
) {
    macro_rules! is {
        ($key:literal) => {
            tokens.is_key(key_end, $key)
        };
    }
    let jax = &mut extras.jax;
    let text = || tokens.string(colon);
    if is!(b"\"correlation_id\"") {
        args.correlation = tokens.u64(colon);
    } else if is!(b"\"kernel_details\"") {
        jax.work = text().map(Work::Kernel);
    } else if is!(b"\"memcpy_details\"") {
        jax.work = text().map(Work::Memcpy);
    } else if is!(b"\"memset_details\"") {
        jax.work = text().map(Work::Memset);
    } else if is!(b"\"cuda_graph_exec_id\"") {
        jax.work = jax.work.or(Some(Work::Graph));
    } else if is!(b"\"device_id\"") {
        jax.is_call = true;
    } else if is!(b"\"hlo_op\"") {
        jax.hlo_op = text().filter(|op| !op.is_empty());
    } else if is!(b"\"hlo_module\"") {
        jax.hlo_module = text().filter(|module| !module.is_empty());
    } else if is!(b"\"context_id\"") {
        // Written as `$$1`, which makes a viewer show it as a number.
        args.context =
            text().and_then(|id| parse_u64(id.trim_ascii_start().strip_prefix(b"$$").unwrap_or(id))).and_then(|id| i64::try_from(id).ok());
    } else if is!(b"\"cuda_graph_id\"") {
        args.graph = tokens.u64(colon).filter(|id| *id != 0);
    } else if is!(b"\"cuda_graph_node_id\"") {
        args.graph_node = tokens.u64(colon).filter(|id| *id != 0);
    } else if is!(b"\"name\"") {
        args.label = text();
    }
}

/// The value of a part `key:value` of details, which spaces separate.
fn part<'a>(details: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    details.split(|byte| *byte == b' ').find_map(|part| part.strip_prefix(key)?.strip_prefix(b":"))
}

fn number(details: &[u8], key: &[u8]) -> Option<u64> {
    parse_u64(part(details, key)?)
}

/// `x,y,z`.
fn triple(details: &[u8], key: &[u8]) -> Option<[u32; 3]> {
    let mut numbers = part(details, key)?.split(|byte| *byte == b',').map(|text| u32::try_from(parse_u64(text)?).ok());
    let triple = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(triple)
}

/// `regs:168 static_shared:0 dynamic_shared:98328 grid:256,1,1 block:128,1,1 occ_pct:12.5`.
pub(super) fn launch(details: &[u8]) -> LaunchConfig {
    let shared = number(details, b"static_shared").zip(number(details, b"dynamic_shared"));
    LaunchConfig {
        grid: triple(details, b"grid"),
        block: triple(details, b"block"),
        registers_per_thread: number(details, b"regs").and_then(|count| u32::try_from(count).ok()),
        shared_bytes: shared.and_then(|(fixed, dynamic)| u32::try_from(fixed.checked_add(dynamic)?).ok()),
    }
}

/// `kind_src:pinned kind_dst:device size:8 dest:0 async:1` of a copy, `kind:device num_bytes:64 async:1` of a fill.
pub(super) fn transfer(kind: ActivityKind, name: &[u8], details: &[u8]) -> Transfer {
    if kind == ActivityKind::Memset {
        return Transfer { bytes: number(details, b"num_bytes"), kind: MemcpyKind::Unknown, pageable: None };
    }
    let is_host = |key: &[u8]| match part(details, key)? {
        b"pageable" | b"pinned" => Some(true),
        b"unknown" | b"" => None,
        _ => Some(false),
    };
    let direction = match (is_host(b"kind_src"), is_host(b"kind_dst")) {
        _ if name.starts_with(b"MemcpyP2P") => MemcpyKind::PeerToPeer,
        (Some(true), Some(true)) => MemcpyKind::HostToHost,
        (Some(true), Some(false)) => MemcpyKind::HostToDevice,
        (Some(false), Some(true)) => MemcpyKind::DeviceToHost,
        (Some(false), Some(false)) => MemcpyKind::DeviceToDevice,
        _ if name.starts_with(b"MemcpyH2D") => MemcpyKind::HostToDevice,
        _ if name.starts_with(b"MemcpyD2H") => MemcpyKind::DeviceToHost,
        _ if name.starts_with(b"MemcpyD2D") => MemcpyKind::DeviceToDevice,
        _ => MemcpyKind::Unknown,
    };
    let kinds = [part(details, b"kind_src"), part(details, b"kind_dst")];
    let has = |kind: &[u8]| kinds.contains(&Some(kind));
    let pageable = if has(b"pageable") { Some(true) } else { has(b"pinned").then_some(false) };
    Transfer { bytes: number(details, b"size"), kind: direction, pageable }
}

/// Functions of CUDA and HIP, by how they are called.
pub(super) fn is_function(name: &[u8]) -> bool {
    let upper = |at: usize| name.get(at).is_some_and(u8::is_ascii_uppercase);
    (name.starts_with(b"cu") && upper(2)) || (name.starts_with(b"cuda") && upper(4)) || (name.starts_with(b"hip") && upper(3))
}

/// A process of XLA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Host,
    /// A GPU, by its number.
    Gpu(i64),
    /// A device whose work this version does not read.
    Device,
}

/// What the merging thread has to know of a document of XLA's.
#[derive(Debug, Default)]
pub(super) struct Jax {
    processes: HashMap<i64, Process, FixedState>,
    /// Calls that may have launched device work, by correlation number.
    calls: HashMap<u64, (ThreadId, Ns, Ns), FixedState>,
    /// Ids of (correlation number, HLO operation), and these in order.
    ids: HashMap<(u64, StrId), u64, FixedState>,
    pairs: Vec<(u64, StrId)>,
}

impl Jax {
    /// Learns what a process is.
    pub(super) fn learn(&mut self, pid: i64, name: &[u8]) {
        let process = match name.strip_prefix(b"/device:") {
            None => Process::Host,
            Some(device) => match device.strip_prefix(b"GPU:").and_then(parse_u64).and_then(|number| i64::try_from(number).ok()) {
                Some(number) => Process::Gpu(number),
                None => Process::Device,
            },
        };
        self.processes.insert(pid, process);
    }

    /// The number of the GPU that a process stands for.
    pub(super) fn ordinal(&self, pid: i64) -> i64 {
        match self.processes.get(&pid) {
            Some(Process::Gpu(number)) => *number,
            _ => pid.saturating_sub(1),
        }
    }

    /// Whether host events of this process are none: lines that XLA derived from those of a device.
    pub(super) fn is_device(&self, pid: i64) -> bool {
        matches!(self.processes.get(&pid), Some(Process::Gpu(_) | Process::Device))
    }

    /// Whether it is a device whose work is not read.
    pub(super) fn is_unread(&self, pid: i64) -> bool {
        self.processes.get(&pid) == Some(&Process::Device)
    }

    pub(super) fn add_call(&mut self, correlation: u64, thread: ThreadId, start: Ns, dur: Ns) {
        self.calls.entry(correlation).or_insert((thread, start, dur));
    }

    /// The external id of device work: one for the work that one call launched for one operation.
    pub(super) fn external_id(&mut self, correlation: u64, operation: StrId) -> u64 {
        let next = self.pairs.len() as u64;
        *self.ids.entry((correlation, operation)).or_insert_with_key(|pair| {
            self.pairs.push(*pair);
            next
        })
    }

    /// The operators of the document: for each operation of each launch one that lasts as long as the call. Where one call launches the
    /// work of several operations (a command buffer), none has host time of its own, so they have no length.
    pub(super) fn operators(&mut self) -> Vec<HostOp> {
        let mut operations: HashMap<u64, u32, FixedState> = HashMap::default();
        for (correlation, _) in &self.pairs {
            *operations.entry(*correlation).or_insert(0) += 1;
        }
        let operator = |(id, (correlation, name)): (usize, &(u64, StrId))| {
            let &(thread, start, dur) = self.calls.get(correlation)?;
            let dur = if operations.get(correlation) == Some(&1) { dur } else { Ns::ZERO };
            let external_id = Some(id as u64);
            Some(HostOp { name: *name, thread, start, dur, external_id, shapes: None, types: None, strides: None, values: None })
        };
        let operators = self.pairs.iter().enumerate().filter_map(operator).collect();
        *self = Self::default();
        operators
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_read_as_written() {
        let config = launch(b"regs:168 static_shared:32 dynamic_shared:98328 grid:256,2,1 block:128,1,1 occ_pct:12.5");
        assert_eq!(config.grid, Some([256, 2, 1]));
        assert_eq!(config.block, Some([128, 1, 1]));
        assert_eq!((config.registers_per_thread, config.shared_bytes), (Some(168), Some(98360)));
        assert_eq!(launch(b"regs:x grid:1,2 block:1,2,3,4 static_shared:1"), LaunchConfig::default());
        let copy = |name: &[u8], details: &[u8]| transfer(ActivityKind::Memcpy, name, details);
        let found = copy(b"MemcpyH2D", b"kind_src:pinned kind_dst:device size:8 dest:0 async:1");
        assert_eq!(found, Transfer { bytes: Some(8), kind: MemcpyKind::HostToDevice, pageable: Some(false) });
        let found = copy(b"MemcpyD2H", b"kind_src:unknown kind_dst:unknown size:18446744073709551616");
        assert_eq!(found, Transfer { bytes: None, kind: MemcpyKind::DeviceToHost, pageable: None });
        let found = transfer(ActivityKind::Memset, b"Memset", b"kind:device num_bytes:64 async:1");
        assert_eq!(found, Transfer { bytes: Some(64), kind: MemcpyKind::Unknown, pageable: None });
    }
}
