//! Functions with which a test program makes work happen: what the GPU and the runtime would do.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{Bytes, UNKNOWN_KIND};
use crate::state::{self, STATE, now};

/// Kinds that make `cuptiActivityGetNextRecord` fail in one way each.
pub(crate) const FAULT_SAME: u32 = 901;
pub(crate) const FAULT_BACK: u32 = 902;
pub(crate) const FAULT_ERROR: u32 = 903;

/// A record of a kind that is too short for it: the end of the buffer comes first.
const FAULT_CUT: u32 = 904;

static CORRELATION: AtomicU32 = AtomicU32::new(1);
static NODE: AtomicU64 = AtomicU64::new(1000);

fn tid() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// A call of the runtime that returns now and began a microsecond ago; its number.
fn call(domain: u32, id: u32) -> u32 {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let state = STATE.lock();
    let kind = if domain == 2 { 5 } else { 4 };
    let wanted = state.kinds.contains(&kind) || state.functions.contains(&(domain, id));
    let named = if state.system_threads { tid() } else { 0x00c0_ffee };
    drop(state);
    if wanted {
        let end = now();
        let mut record = Bytes::of(kind);
        record.u32(4, id);
        record.u64(8, end - 1000);
        record.u64(16, end);
        record.u32(24, std::process::id());
        record.u32(28, named);
        record.u32(32, correlation);
        record.u32(36, 0);
        state::append(record.get());
    }
    correlation
}

fn is_on(kind: u32) -> bool {
    STATE.lock().kinds.contains(&kind)
}

/// Where a record has node, graph and channel.
fn graph(record: &mut Bytes, node_at: usize, graph_at: usize, channel_at: usize, node: u64, graph: u32) {
    record.u64(node_at, node);
    record.u32(graph_at, graph);
    record.u32(channel_at, 7);
    record.u32(channel_at + 4, u32::from(node != 0));
}

fn kernel(name: *const c_char, stream: u32, correlation: u32, node: u64, of_graph: u32) {
    if !is_on(10) {
        return;
    }
    let mut record = Bytes::of(10);
    let end = now();
    record.u16(6, 40);
    record.u64(16, end - 2000);
    record.u64(24, end);
    record.u64(32, 0);
    for (at, value) in
        [(40, 0), (44, 1), (48, stream), (52, 132), (56, 2), (60, 1), (64, 128), (68, 1), (72, 1), (76, 1024), (80, 2048), (84, 0)]
    {
        record.u32(at, value);
    }
    record.u32(92, correlation);
    record.u64(96, 1);
    record.u64(104, name.expose_provenance() as u64);
    record.u64(120, 0);
    record.u64(128, 0);
    graph(&mut record, 144, 156, 168, node, of_graph);
    for (at, value) in [(176, 2), (180, 1), (184, 1)] {
        record.u32(at, value);
    }
    state::append(record.get());
}

/// A call that launches a kernel.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_launch(name: *const c_char, stream: u32) -> u32 {
    let correlation = call(2, 211);
    kernel(name, stream, correlation, 0, 0);
    correlation
}

/// A call that asks for something, as programs do between launches.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_noise() {
    call(2, 17);
    call(1, 304);
}

/// A copy to the device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_copy(bytes: u64) {
    let correlation = call(2, 41);
    if is_on(1) {
        let end = now();
        let mut record = Bytes::of(1);
        for (at, value) in [(4, 1), (5, 1), (6, 3), (7, 1)] {
            record.u8(at, value);
        }
        record.u64(8, bytes);
        record.u64(16, end - 500);
        record.u64(24, end);
        for (at, value) in [(32, 0), (36, 1), (40, 7), (44, correlation)] {
            record.u32(at, value);
        }
        graph(&mut record, 64, 72, 76, 0, 0);
        state::append(record.get());
    }
}

/// Memory that is set.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_set(bytes: u64, value: u32) {
    let correlation = call(2, 51);
    if is_on(2) {
        let end = now();
        let mut record = Bytes::of(2);
        record.u32(4, value);
        record.u64(8, bytes);
        record.u64(16, end - 400);
        record.u64(24, end);
        for (at, value) in [(32, 0), (36, 1), (40, 7), (44, correlation)] {
            record.u32(at, value);
        }
        record.u16(50, 3);
        graph(&mut record, 64, 72, 76, 77, 8);
        state::append(record.get());
    }
}

/// A copy between devices 1 and 2.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_peer_copy(bytes: u64) {
    let correlation = call(2, 161);
    if is_on(22) {
        let end = now();
        let mut record = Bytes::of(22);
        record.u64(8, bytes);
        record.u64(16, end - 300);
        record.u64(24, end);
        for (at, value) in [(32, 1), (36, 4), (40, 9), (44, 1), (48, 4), (52, 2), (56, 5), (60, correlation)] {
            record.u32(at, value);
        }
        graph(&mut record, 72, 80, 84, 0, 0);
        state::append(record.get());
    }
}

/// The host waits for the device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_synchronize() {
    let correlation = call(2, 165);
    if is_on(38) {
        let end = now();
        let mut record = Bytes::of(38);
        record.u32(4, 4);
        record.u64(8, end - 100);
        record.u64(16, end);
        for (at, value) in [(24, correlation), (28, 1), (32, u32::MAX), (36, u32::MAX)] {
            record.u32(at, value);
        }
        if record.get().len() > 40 {
            record.u64(40, u64::from(u32::MAX));
        }
        state::append(record.get());
    }
}

/// An event is recorded on stream 7.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_event() {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    if is_on(36) {
        let mut record = Bytes::of(36);
        for (at, value) in [(4, correlation), (8, 1), (12, 7), (16, 33)] {
            record.u32(at, value);
        }
        if record.get().len() > 48 {
            record.u64(48, 12);
        }
        state::append(record.get());
    }
}

/// Time that CUPTI takes on this thread.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_overhead() {
    if is_on(17) {
        let end = now();
        let mut record = Bytes::of(17);
        for (at, value) in [(4, 65_536), (8, 2), (12, std::process::id()), (16, tid()), (20, 0)] {
            record.u32(at, value);
        }
        record.u64(24, end - 50);
        record.u64(32, end);
        if record.get().len() > 40 {
            record.u32(40, 4711);
        }
        state::append(record.get());
    }
}

/// What `CUpti_GraphData` and `CUpti_ResourceData` are.
#[repr(C)]
struct GraphData {
    graph: *mut c_void,
    original_graph: *mut c_void,
    node: *mut c_void,
    original_node: *mut c_void,
    kind: u32,
    dependency: *mut c_void,
    executable: *mut c_void,
}

#[repr(C)]
struct ResourceData {
    context: *mut c_void,
    stream: *mut c_void,
    descriptor: *const GraphData,
}

fn callback(domain: u32, id: u32, data: *const c_void) {
    let state = STATE.lock();
    let Some(subscription) = &state.subscription else { return };
    if subscription.callbacks.contains(&(domain, id)) {
        let (call, user) = (subscription.callback, subscription.user);
        drop(state);
        call(without_provenance_mut(user), domain, id, data);
    }
}

fn node_event(id: u32, graph: usize, node: u64, original: u64) {
    let descriptor = GraphData {
        graph: without_provenance_mut(graph),
        original_graph: null_mut(),
        node: without_provenance_mut(node as usize),
        original_node: without_provenance_mut(original as usize),
        kind: 0,
        dependency: null_mut(),
        executable: null_mut(),
    };
    let resource = ResourceData { context: null_mut(), stream: null_mut(), descriptor: &raw const descriptor };
    callback(3, id, (&raw const resource).cast());
}

/// Captures a graph of so many nodes (graph 5) and makes it executable (graph 6); the first node of the latter.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_graph_create(nodes: u64) -> u64 {
    let first = NODE.fetch_add(2 * nodes, Ordering::Relaxed);
    for node in first..first + nodes {
        node_event(13, 5, node, 0);
    }
    for node in first..first + nodes {
        node_event(20, 6, node + nodes, node);
    }
    first + nodes
}

/// Launches it: one call, a kernel a node.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_graph_launch(name: *const c_char, first: u64, nodes: u64) {
    let correlation = call(2, 311);
    for node in first..first + nodes {
        kernel(name, 7, correlation, node, 6);
    }
}

/// `cudaProfilerStart` and `cudaProfilerStop`, each of which calls the driver's.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_profiler(on: u32) {
    #[repr(C)]
    struct ApiData {
        site: u32,
        rest: [usize; 9],
    }
    let (runtime, driver) = if on == 1 { (171, 308) } else { (172, 309) };
    for (domain, id, site) in [(2, runtime, 0), (1, driver, 0), (1, driver, 1), (2, runtime, 1)] {
        let data = ApiData { site, rest: [0; 9] };
        callback(domain, id, (&raw const data).cast());
    }
    call(2, runtime);
}

/// Something that a library should not do.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mock_fault(which: *const c_char) {
    // SAFETY: the program passes a text that ends in a zero.
    let which = unsafe { CStr::from_ptr(which) };
    match which.to_bytes() {
        b"unknown" => {
            for size in [8, 40, 48, 1024] {
                state::append(Bytes::sized(UNKNOWN_KIND, size).get());
            }
        }
        b"same" => state::append(Bytes::sized(FAULT_SAME, 24).get()),
        b"back" => state::append(Bytes::sized(FAULT_BACK, 24).get()),
        b"error" => state::append(Bytes::sized(FAULT_ERROR, 24).get()),
        // The last record of the buffer lacks its last bytes.
        b"cut" => {
            state::append(Bytes::sized(FAULT_CUT, 24).get());
            mock_launch(c"cut_kernel".as_ptr(), 7);
            STATE.lock().cut = 12;
        }
        _ => {}
    }
}

/// Records that found no buffer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_drop(count: u64) {
    STATE.lock().dropped += count as usize;
}

/// Whether records are unfinished until a forced flush.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_hold(on: u32) {
    STATE.lock().held = on == 1;
}

/// Whether anybody has subscribed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mock_is_subscribed() -> u32 {
    u32::from(STATE.lock().subscription.is_some())
}
