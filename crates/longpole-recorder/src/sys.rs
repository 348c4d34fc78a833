//! What is asked of the operating system: clocks, thread numbers, shared libraries, and entries that harm nobody.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// Puts `errno` back to what the program had when it is dropped: between a failed call and the program's look at `errno` may lie a call of
/// ours.
struct KeepErrno(c_int);

impl KeepErrno {
    fn new() -> Self {
        // SAFETY: the C library gives every thread a valid place for errno.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Runs the body of a function that foreign code calls: no panic leaves it, and `errno` is kept.
pub(crate) fn guarded<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    let _errno = KeepErrno::new();
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping what was thrown could panic again.
        std::mem::forget(payload);
        fallback
    })
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Nanoseconds since 1970.
pub(crate) fn realtime_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// Nanoseconds of a clock that never steps back.
pub(crate) fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Processor time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Counts the forks between the process that loaded us and this one, so that numbers remembered from before are not used.
static GENERATION: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The generation this thread's number is of, and the number. Without a destructor, so that it can be asked for at any time.
    static THREAD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The calling thread as the operating system numbers it, which is how CUPTI is told to name threads too.
pub(crate) fn tid() -> u32 {
    let generation = GENERATION.load(Ordering::Relaxed);
    THREAD.with(|known| {
        let (of, tid) = known.get();
        if of == generation {
            return tid;
        }
        // SAFETY: takes no arguments and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        known.set((generation, tid));
        tid
    })
}

/// Called in the child after a fork: what threads remember of themselves is of the parent.
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The process, asked anew every time: a child must never take itself for its parent.
pub(crate) fn pid() -> u32 {
    std::process::id()
}

/// A loaded library. It stays loaded: what it gave us may be called at any later time.
#[derive(Clone, Copy)]
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Loads it, with everything it needs.
    pub(crate) fn open(name: &CStr) -> Option<Self> {
        Self::with_flags(name, libc::RTLD_NOW | libc::RTLD_LOCAL)
    }

    /// Finds it where the process has it already.
    pub(crate) fn loaded(name: &CStr) -> Option<Self> {
        Self::with_flags(name, libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NOLOAD)
    }

    fn with_flags(name: &CStr, flags: c_int) -> Option<Self> {
        // SAFETY: the name ends in a zero. Constructors of the library run, which is what loading it means.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// One of its functions.
    ///
    /// # Safety
    ///
    /// `F` must be a function pointer of the type that the library's function has.
    pub(crate) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "only function pointers can be looked up") };
        // SAFETY: the handle is of a loaded library and the name ends in a zero.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if address.is_null() {
            return None;
        }
        // SAFETY: the sizes agree, and the caller promises that this is what the address is of.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }
}

/// The file that an address of code lies in.
pub(crate) fn file_of(address: *const c_void) -> Option<Vec<u8>> {
    // SAFETY: all fields are pointers, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for, and the answer goes to a place of ours.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's names end in a zero and live as long as the library.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes().to_vec())
}

/// Keeps this library in memory for good: threads of ours run in it, and others hold pointers to its functions.
pub(crate) fn stay_loaded(address: *const c_void) {
    let Some(mut name) = file_of(address) else { return };
    name.push(0);
    if let Ok(name) = CStr::from_bytes_with_nul(&name) {
        Library::with_flags(name, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
    }
}

/// Runs `body` with every signal blocked, so that a thread started by it takes none of the program's.
pub(crate) fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: a signal set is plain numbers, for which zero is a value.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: both sets are ours.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let result = body();
    // SAFETY: the set is the one that was stored above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

/// The text at an address, at most `limit` bytes of it.
///
/// # Safety
///
/// The address must be null or of bytes that end in a zero, or of `limit` readable bytes, valid for `'a`.
pub(crate) unsafe fn text<'a>(address: *const c_char, limit: usize) -> &'a [u8] {
    if address.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller; nothing behind the zero or the limit is read.
    unsafe {
        let length = libc::strnlen(address, limit);
        std::slice::from_raw_parts(address.cast(), length)
    }
}
