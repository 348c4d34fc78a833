//! A libcupti that needs no GPU: the functions that the recorder calls, and functions with which a test program makes work happen.
//!
//! It keeps CUPTI's contract where the recorder depends on it: buffers are asked for and given back through callbacks, records lie behind one
//! another and are found with `cuptiActivityGetNextRecord`, a second subscriber is refused, single functions are switched on before or after
//! their kind. Environment variables change it:
//!
//! - `MOCK_CUPTI_VERSION`: what `cuptiGetVersion` says (18 is CUDA 12.0, 26 is 12.8, 130000 is 13.0, 130400 is 13.4); records have the sizes
//!   they have there
//! - `MOCK_CUPTI_SUBSCRIBE`: the code that `cuptiSubscribe` returns
//! - `MOCK_CUPTI_CLOCK`: nanoseconds by which its clock is ahead of the wall clock
#![expect(missing_docs, clippy::missing_safety_doc, reason = "C functions, with the contract of the ones they stand for")]

mod control;
mod layout;
mod state;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use layout::size_of_record;
use state::{CLOCK, STATE, Subscription, version};

const SUCCESS: c_int = 0;
const INVALID_PARAMETER: c_int = 1;
const MAX_LIMIT_REACHED: c_int = 12;
const NOT_SUPPORTED: c_int = 27;
const MULTIPLE_SUBSCRIBERS: c_int = 39;

/// # Safety: the caller's pointer is one to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(answer: *mut u32) -> c_int {
    // SAFETY: as above.
    unsafe { answer.write(version()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(kind: u32) -> c_int {
    STATE.lock().system_threads = kind == 1;
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(handle: *mut *mut c_void, callback: state::Callback, user: *mut c_void) -> c_int {
    if let Some(code) = state::number("MOCK_CUPTI_SUBSCRIBE") {
        return code as c_int;
    }
    let mut state = STATE.lock();
    if state.subscription.is_some() {
        return MULTIPLE_SUBSCRIBERS;
    }
    state.subscription = Some(Subscription { callback, user: user.addr(), callbacks: Vec::new() });
    // SAFETY: the caller's pointer is one to write to.
    unsafe { handle.write(std::ptr::without_provenance_mut(0x5000)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(on: u32, handle: *mut c_void, domain: u32, id: u32) -> c_int {
    let mut state = STATE.lock();
    let Some(subscription) = state.subscription.as_mut().filter(|_| handle.addr() == 0x5000) else { return INVALID_PARAMETER };
    subscription.callbacks.retain(|&known| known != (domain, id));
    if on != 0 {
        subscription.callbacks.push((domain, id));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(request: state::Request, complete: state::Complete) -> c_int {
    STATE.lock().buffers = Some((request, complete));
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) -> c_int {
    // SAFETY: the caller's pointers are to a size and so many bytes.
    let (size, value) = unsafe { (*size, *value.cast::<u8>()) };
    if attribute != 5 || size != 1 {
        return INVALID_PARAMETER;
    }
    STATE.lock().expects_zeros = value != 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> c_int {
    STATE.lock().kinds.insert(kind);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> c_int {
    STATE.lock().kinds.remove(&kind);
    SUCCESS
}

fn switch_function(domain: u32, id: u32, on: u8) -> c_int {
    // CUDA 12.5 brought them.
    if version() < 23 {
        return NOT_SUPPORTED;
    }
    let mut state = STATE.lock();
    if on == 0 {
        state.functions.remove(&(domain, id));
    } else {
        state.functions.insert((domain, id));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(id: u32, on: u8) -> c_int {
    switch_function(2, id, on)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(id: u32, on: u8) -> c_int {
    switch_function(1, id, on)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flag: u32) -> c_int {
    state::flush(flag & 1 == 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> c_int {
    // SAFETY: the record is null or one of the buffer's, and the buffer has so many bytes of records.
    unsafe {
        let last = *record;
        if last.is_null() {
            if valid < 4 {
                return MAX_LIMIT_REACHED;
            }
            record.write(buffer);
            return SUCCESS;
        }
        let kind = last.cast::<u32>().read_unaligned();
        match kind {
            // Faults of the library: the same record for ever, the first one again, an error.
            control::FAULT_SAME => return SUCCESS,
            control::FAULT_BACK => {
                record.write(buffer);
                return SUCCESS;
            }
            control::FAULT_ERROR => return 999,
            _ => {}
        }
        let size = size_of_record(kind, last);
        let next = last.addr() - buffer.addr() + size;
        if next + 4 > valid {
            return MAX_LIMIT_REACHED;
        }
        record.write(buffer.add(next));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(_context: *mut c_void, _stream: u32, count: *mut usize) -> c_int {
    // SAFETY: the caller's pointer is one to write to.
    unsafe { count.write(std::mem::take(&mut STATE.lock().dropped)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(time: *mut u64) -> c_int {
    // SAFETY: the caller's pointer is one to write to.
    unsafe { time.write(state::now()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(code: c_int, text: *mut *const c_char) -> c_int {
    let known = match code {
        MULTIPLE_SUBSCRIBERS => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        35 => c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        _ => return INVALID_PARAMETER,
    };
    // SAFETY: the caller's pointer is one to write to.
    unsafe { text.write(known.as_ptr()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(domain: u32, id: u32, name: *mut *const c_char) -> c_int {
    let Some(known) = state::function_name(domain, id) else { return INVALID_PARAMETER };
    // SAFETY: the caller's pointer is one to write to.
    unsafe { name.write(known.as_ptr()) };
    SUCCESS
}

/// Nodes and graphs are numbers in this mock, and their handles are those numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphNodeId(node: *mut c_void, id: *mut u64) -> c_int {
    // SAFETY: the caller's pointer is one to write to.
    unsafe { id.write(node.addr() as u64) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphId(graph: *mut c_void, id: *mut u32) -> c_int {
    // SAFETY: the caller's pointer is one to write to.
    unsafe { id.write(graph.addr() as u32) };
    SUCCESS
}

/// How far the clock is ahead, read once.
fn clock_offset() -> i64 {
    let known = CLOCK.load(Ordering::Relaxed);
    if known != i64::MIN {
        return known;
    }
    let offset = state::number("MOCK_CUPTI_CLOCK").unwrap_or(0);
    CLOCK.store(offset, Ordering::Relaxed);
    offset
}

/// For functions that take a stream or context that there is none of.
const NOBODY: *mut c_void = null_mut();
