//! What the mock remembers, and the way of a record into a buffer.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{NOBODY, clock_offset};

pub(crate) type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);
pub(crate) type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(crate) type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

pub(crate) struct Subscription {
    pub(crate) callback: Callback,
    pub(crate) user: usize,
    pub(crate) callbacks: Vec<(u32, u32)>,
}

/// A buffer of the client's that is being filled.
struct Filling {
    address: usize,
    size: usize,
    used: usize,
}

pub(crate) struct State {
    pub(crate) subscription: Option<Subscription>,
    pub(crate) buffers: Option<(Request, Complete)>,
    pub(crate) kinds: BTreeSet<u32>,
    pub(crate) functions: BTreeSet<(u32, u32)>,
    pub(crate) system_threads: bool,
    pub(crate) dropped: usize,
    /// Whether records stay unfinished until a forced flush.
    pub(crate) held: bool,
    /// Whether the client has promised that buffers come empty.
    pub(crate) expects_zeros: bool,
    /// Bytes that the next buffer is cut short by.
    pub(crate) cut: usize,
    filling: Option<Filling>,
}

pub(crate) struct Shared(Mutex<State>);

pub(crate) static STATE: Shared = Shared(Mutex::new(State {
    subscription: None,
    buffers: None,
    kinds: BTreeSet::new(),
    functions: BTreeSet::new(),
    system_threads: false,
    dropped: 0,
    held: false,
    expects_zeros: false,
    cut: 0,
    filling: None,
}));

/// How far the clock is ahead of the wall clock; the smallest number while it has not been read.
pub(crate) static CLOCK: AtomicI64 = AtomicI64::new(i64::MIN);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number from the environment.
pub(crate) fn number(variable: &str) -> Option<i64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The version that is played.
pub(crate) fn version() -> u32 {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let version = number("MOCK_CUPTI_VERSION").unwrap_or(130_000) as u32;
    KNOWN.store(version, Ordering::Relaxed);
    version
}

/// The clock.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    (time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()).wrapping_add_signed(clock_offset())
}

/// Names of functions by their numbers, as they are in CUPTI for those that are used here.
pub(crate) fn function_name(domain: u32, id: u32) -> Option<&'static CStr> {
    Some(match (domain, id) {
        (2, 17) => c"cudaGetDevice_v3020",
        (2, 41) => c"cudaMemcpyAsync_v3020",
        (2, 51) => c"cudaMemsetAsync_v3020",
        (2, 161) => c"cudaMemcpyPeerAsync_v4000",
        (2, 165) => c"cudaDeviceSynchronize_v3020",
        (2, 171) => c"cudaProfilerStart_v4000",
        (2, 172) => c"cudaProfilerStop_v4000",
        (2, 211) => c"cudaLaunchKernel_v7000",
        (2, 311) => c"cudaGraphLaunch_v10000",
        (2, 1..=480) => c"cudaSomethingElse_v1000",
        (1, 304) => c"cuCtxGetCurrent",
        (1, 307) => c"cuLaunchKernel",
        (1, 308) => c"cuProfilerStart",
        (1, 309) => c"cuProfilerStop",
        (1, 1..=790) => c"cuSomethingElse",
        _ => return None,
    })
}

/// Appends a record, asking for a buffer or giving one back as it takes. No lock is held while the client is called.
pub(crate) fn append(record: &[u8]) {
    loop {
        let mut state = STATE.lock();
        let Some((request, complete)) = state.buffers else { return };
        let Some(filling) = &mut state.filling else {
            drop(state);
            let (mut address, mut size, mut most) = (null_mut(), 0, 0);
            request(&raw mut address, &raw mut size, &raw mut most);
            assert!(address.addr().is_multiple_of(8), "buffers have to be aligned to eight bytes");
            let mut state = STATE.lock();
            if state.expects_zeros && !address.is_null() {
                // SAFETY: the client says that so many bytes are there, and initialised.
                let bytes = unsafe { std::slice::from_raw_parts(address, size) };
                assert!(bytes.iter().all(|&byte| byte == 0), "a buffer that was promised to be empty is not");
            }
            if address.is_null() || size < record.len() {
                state.dropped += 1;
                return;
            }
            // Two threads may ask at once; the second one's buffer goes back empty.
            if state.filling.is_none() {
                state.filling = Some(Filling { address: address.expose_provenance(), size, used: 0 });
            } else {
                drop(state);
                complete(NOBODY, 0, address, size, 0);
            }
            continue;
        };
        if filling.used + record.len() <= filling.size {
            let place = std::ptr::with_exposed_provenance_mut::<u8>(filling.address + filling.used);
            // SAFETY: so many bytes are left of a buffer that the client gave us to write to.
            unsafe { place.copy_from_nonoverlapping(record.as_ptr(), record.len()) };
            filling.used += record.len();
            return;
        }
        drop(state);
        deliver();
    }
}

fn deliver() {
    let mut state = STATE.lock();
    let Some((_, complete)) = state.buffers else { return };
    let Some(filling) = state.filling.take() else { return };
    let cut = std::mem::take(&mut state.cut);
    drop(state);
    let address = std::ptr::with_exposed_provenance_mut(filling.address);
    complete(NOBODY, 0, address, filling.size, filling.used.saturating_sub(cut));
}

/// Gives the buffer back.
pub(crate) fn flush(forced: bool) {
    if forced || !STATE.lock().held {
        deliver();
    }
}
