//! The functions that a program calls in place of NVTX's own.
//!
//! Each copies what it is told and returns: a timestamp, a thread number that is remembered, one copy under a short lock.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::AnyFunction;
use super::names::{DOMAINS, STRINGS};
use crate::queue::{Event, MOST_MESSAGE_BYTES, Text, What, widen};
use crate::recorder::{CAUSE_NVTX, Recorder};
use crate::settings::Range;
use crate::sys::{self, guarded};

/// `NVTX_NO_PUSH_POP_TRACKING`: what push and pop return when nobody counts levels.
const NOT_TRACKED: c_int = -2;

/// `nvtxEventAttributes_t`, version 2 and 3: 48 bytes.
#[repr(C)]
pub(super) struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// Domains whose levels a thread keeps.
const TRACKED_DOMAINS: usize = 8;
/// Ranges with the name that is recorded, one within the other, that a thread keeps.
const TRACKED_RANGES: usize = 8;

thread_local! {
    /// Domain and number of open ranges. Without destructors: NVTX may be called while a thread ends.
    static LEVELS: Cell<[(u32, c_int); TRACKED_DOMAINS]> = const { Cell::new([(u32::MAX, 0); TRACKED_DOMAINS]) };
    /// Domain and level of the open ranges that have the name that is recorded.
    static WATCHED: Cell<[(u32, c_int); TRACKED_RANGES]> = const { Cell::new([(0, -1); TRACKED_RANGES]) };
}

/// Changes the level of a domain on this thread; the level before a push, after a pop.
fn level(domain: u32, change: c_int) -> c_int {
    LEVELS.with(|levels| {
        let mut all = levels.get();
        for (of, open) in &mut all {
            if *of == u32::MAX {
                *of = domain;
            }
            if *of == domain {
                let before = *open;
                // A pop without a push leaves the level at the bottom.
                *open = (before + change).max(0);
                let result = if change > 0 { before } else { before - 1 };
                levels.set(all);
                return result;
            }
        }
        NOT_TRACKED
    })
}

/// Ranges whose name is the one that is recorded.
pub(crate) struct RangeWatch {
    /// Ranges started and not ended, by their numbers; a program has few of them open at a time.
    started: Mutex<Vec<u64>>,
    any_started: AtomicUsize,
}

impl RangeWatch {
    pub(crate) const fn new() -> Self {
        Self { started: Mutex::new(Vec::new()), any_started: AtomicUsize::new(0) }
    }

    fn add(&self, id: u64) {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.any_started.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, id: u64) -> bool {
        if self.any_started.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = started.iter().position(|&open| open == id) else { return false };
        started.swap_remove(at);
        self.any_started.fetch_sub(1, Ordering::Relaxed);
        true
    }
}

/// Whether a message is the name of the range that is recorded.
///
/// # Safety
///
/// The text must be null or end in a zero.
unsafe fn is_watched(recorder: &Recorder, domain: u32, text: Text) -> bool {
    let Range::Nvtx { name, domain: wanted } = &recorder.settings.range else { return false };
    if wanted.as_ref().is_some_and(|wanted| DOMAINS.get(domain).unwrap_or_default() != wanted.as_slice()) {
        return false;
    }
    match text {
        Text::None => false,
        Text::Registered(index) => STRINGS.get(index) == Some(name.as_slice()),
        Text::Narrow(address) => {
            // SAFETY: promised by the caller.
            let text = unsafe { sys::text(address, MOST_MESSAGE_BYTES) };
            text == name.as_slice()
        }
        Text::Wide(address) => {
            let mut text = Vec::new();
            // SAFETY: promised by the caller.
            unsafe { widen(address, &mut text) };
            text == *name
        }
    }
}

fn watch_push(domain: u32, level: c_int) -> bool {
    WATCHED.with(|watched| {
        let mut all = watched.get();
        let Some(place) = all.iter_mut().find(|(_, level)| *level < 0) else { return false };
        *place = (domain, level);
        watched.set(all);
        true
    })
}

fn watch_pop(domain: u32, level: c_int) -> bool {
    WATCHED.with(|watched| {
        let mut all = watched.get();
        let Some(place) = all.iter_mut().find(|place| **place == (domain, level)) else { return false };
        *place = (0, -1);
        watched.set(all);
        true
    })
}

/// The text among an event's attributes. What else there is (payload, colour, category) is not recorded.
///
/// # Safety
///
/// The attributes must be null or as large as they say.
unsafe fn read(attributes: *const EventAttributes) -> Text {
    const ASCII: i32 = 1;
    const UNICODE: i32 = 2;
    const REGISTERED: i32 = 3;
    // SAFETY: version and size come first in every version.
    if attributes.is_null() || usize::from(unsafe { (*attributes).size }) < size_of::<EventAttributes>() {
        return Text::None;
    }
    // SAFETY: all members are there.
    let from = unsafe { &*attributes };
    match from.message_type {
        ASCII => Text::Narrow(from.message.cast()),
        UNICODE => Text::Wide(from.message.cast()),
        REGISTERED => match STRINGS.index(from.message) {
            0 => Text::None,
            index => Text::Registered(index),
        },
        _ => Text::None,
    }
}

/// Sends an event on its way, if anything is recorded now.
///
/// # Safety
///
/// The text must be null or end in a zero.
unsafe fn emit(recorder: &Recorder, what: What, domain: u32, id: u64, text: Text) {
    if recorder.records_now() {
        // SAFETY: promised by the caller.
        unsafe { recorder.push(Event { domain, id, ..Event::now(what) }, text) };
    }
}

/// # Safety
///
/// As for [`emit`]; this holds for all functions below.
unsafe fn mark(domain: u32, text: Text) {
    if let Some(recorder) = Recorder::current() {
        // SAFETY: promised by the caller.
        unsafe { emit(recorder, What::Mark, domain, 0, text) };
    }
}

unsafe fn push(domain: u32, text: Text) -> c_int {
    let Some(recorder) = Recorder::current() else { return NOT_TRACKED };
    let level = level(domain, 1);
    // SAFETY: promised by the caller.
    unsafe {
        if level >= 0 && is_watched(recorder, domain, text) && watch_push(domain, level) {
            recorder.open_range(CAUSE_NVTX);
        }
        emit(recorder, What::Push, domain, 0, text);
    }
    level
}

unsafe fn pop(domain: u32) -> c_int {
    let Some(recorder) = Recorder::current() else { return NOT_TRACKED };
    let level = level(domain, -1);
    // SAFETY: there is no text.
    unsafe { emit(recorder, What::Pop, domain, 0, Text::None) };
    if matches!(recorder.settings.range, Range::Nvtx { .. }) && watch_pop(domain, level) {
        recorder.close_range(CAUSE_NVTX);
    }
    level
}

unsafe fn start(domain: u32, text: Text) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(recorder) = Recorder::current() {
        // SAFETY: promised by the caller.
        unsafe {
            if is_watched(recorder, domain, text) {
                recorder.range_watch.add(id);
                recorder.open_range(CAUSE_NVTX);
            }
            emit(recorder, What::Start, domain, id, text);
        }
    }
    id
}

unsafe fn end(domain: u32, id: u64) {
    let Some(recorder) = Recorder::current() else { return };
    // SAFETY: there is no text.
    unsafe { emit(recorder, What::End, domain, id, Text::None) };
    if recorder.range_watch.remove(id) {
        recorder.close_range(CAUSE_NVTX);
    }
}

/// Names of threads are taken whether or not anything is recorded now: they are said once.
unsafe fn name_thread(thread: u32, text: Text) {
    if let Some(recorder) = Recorder::current() {
        // SAFETY: promised by the caller.
        unsafe { recorder.push(Event { id: u64::from(thread), ..Event::now(What::ThreadName) }, text) };
    }
}

unsafe fn keep(names: &super::names::Names, text: Text) -> *mut c_void {
    match text {
        // SAFETY: promised by the caller.
        Text::Narrow(address) => names.add(unsafe { sys::text(address, MOST_MESSAGE_BYTES) }),
        Text::Wide(address) => {
            let mut text = Vec::new();
            // SAFETY: promised by the caller.
            unsafe { widen(address, &mut text) };
            names.add(&text)
        }
        Text::None | Text::Registered(_) => std::ptr::null_mut(),
    }
}

/// Defines the functions of a module and lists them with their slots. Every body runs guarded; every pointer it gets is from the program,
/// which has to keep NVTX's contract: texts end in a zero, attributes are as large as they say.
macro_rules! functions {
    ($table:ident: $($slot:literal $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty = $fallback:expr)? => $body:expr;)*) => {
        $(
            unsafe extern "C" fn $function($($argument: $type),*) $(-> $result)? {
                // SAFETY: the program's texts end in a zero and its attributes are as large as they say.
                guarded(functions!(@fallback $($fallback)?), || unsafe { $body })
            }
        )*

        /// Slots and functions.
        pub(super) fn $table() -> Vec<(u32, AnyFunction)> {
            vec![$(
                // SAFETY: the slot is called with the type of its function, which is this one's.
                ($slot, unsafe { transmute::<unsafe extern "C" fn($($type),*) $(-> $result)?, AnyFunction>($function) }),
            )*]
        }
    };
    (@fallback) => { () };
    (@fallback $fallback:expr) => { $fallback };
}

functions! {
    core:
    1 mark_ex(attributes: *const EventAttributes) => mark(0, read(attributes));
    2 mark_a(text: *const c_char) => mark(0, Text::Narrow(text));
    3 mark_w(text: *const u32) => mark(0, Text::Wide(text));
    4 start_ex(attributes: *const EventAttributes) -> u64 = 0 => start(0, read(attributes));
    5 start_a(text: *const c_char) -> u64 = 0 => start(0, Text::Narrow(text));
    6 start_w(text: *const u32) -> u64 = 0 => start(0, Text::Wide(text));
    7 end_range(id: u64) => end(0, id);
    8 push_ex(attributes: *const EventAttributes) -> c_int = NOT_TRACKED => push(0, read(attributes));
    9 push_a(text: *const c_char) -> c_int = NOT_TRACKED => push(0, Text::Narrow(text));
    10 push_w(text: *const u32) -> c_int = NOT_TRACKED => push(0, Text::Wide(text));
    11 pop_range() -> c_int = NOT_TRACKED => pop(0);
    14 name_thread_a(thread: u32, text: *const c_char) => name_thread(thread, Text::Narrow(text));
    15 name_thread_w(thread: u32, text: *const u32) => name_thread(thread, Text::Wide(text));
}

functions! {
    core2:
    1 domain_mark_ex(domain: *const c_void, attributes: *const EventAttributes) => mark(DOMAINS.index(domain), read(attributes));
    2 domain_start_ex(domain: *const c_void, attributes: *const EventAttributes) -> u64 = 0 => start(DOMAINS.index(domain), read(attributes));
    3 domain_end(domain: *const c_void, id: u64) => end(DOMAINS.index(domain), id);
    4 domain_push_ex(domain: *const c_void, attributes: *const EventAttributes) -> c_int = NOT_TRACKED => push(DOMAINS.index(domain), read(attributes));
    5 domain_pop(domain: *const c_void) -> c_int = NOT_TRACKED => pop(DOMAINS.index(domain));
    10 register_string_a(_domain: *const c_void, text: *const c_char) -> *mut c_void = std::ptr::null_mut() => keep(&STRINGS, Text::Narrow(text));
    11 register_string_w(_domain: *const c_void, text: *const u32) -> *mut c_void = std::ptr::null_mut() => keep(&STRINGS, Text::Wide(text));
    12 domain_create_a(text: *const c_char) -> *mut c_void = std::ptr::null_mut() => keep(&DOMAINS, Text::Narrow(text));
    13 domain_create_w(text: *const u32) -> *mut c_void = std::ptr::null_mut() => keep(&DOMAINS, Text::Wide(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_size_that_programs_give_them() {
        assert_eq!(size_of::<EventAttributes>(), 48);
        let offset = |at: usize, expected: usize| assert_eq!(at, expected);
        offset(std::mem::offset_of!(EventAttributes, category), 4);
        offset(std::mem::offset_of!(EventAttributes, color), 12);
        offset(std::mem::offset_of!(EventAttributes, payload_type), 16);
        offset(std::mem::offset_of!(EventAttributes, payload), 24);
        offset(std::mem::offset_of!(EventAttributes, message_type), 32);
        offset(std::mem::offset_of!(EventAttributes, message), 40);
    }

    #[test]
    fn levels_are_of_the_thread_and_the_domain() {
        assert_eq!((level(0, 1), level(0, 1), level(9, 1)), (0, 1, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(level(0, 1), 0));
        });
        assert_eq!((level(0, -1), level(0, -1), level(9, -1)), (1, 0, 0));
        assert_eq!(level(0, -1), -1, "a pop without a push");
        assert_eq!(level(0, 1), 0);
        for domain in 100..100 + TRACKED_DOMAINS as u32 {
            level(domain, 1);
        }
        assert_eq!(level(1000, 1), NOT_TRACKED);
    }

    #[test]
    fn short_attributes_are_not_read() {
        let mut attributes = EventAttributes {
            version: 3,
            size: 48,
            category: 5,
            color_type: 1,
            color: 0xff00_ff00,
            payload_type: 6,
            reserved: 0,
            payload: u64::from(1.5f32.to_bits()),
            message_type: 1,
            message: c"x".as_ptr().cast(),
        };
        // SAFETY: the attributes are whole.
        assert!(matches!(unsafe { read(&raw const attributes) }, Text::Narrow(_)));
        attributes.size = 40;
        // SAFETY: as above.
        assert!(matches!(unsafe { read(&raw const attributes) }, Text::None));
    }
}
