//! Ranges for profilers, by NVTX's interface without NVTX's headers.
//!
//! A tool that wants ranges names a library in `NVTX_INJECTION64_PATH`. It is opened once and handed a function that gives the table of our function
//! pointers, into which it puts its own: of those with no domain, slot 9 is a push and slot 11 a pop (NVTX 3, `nvtxDetail/nvtxTypes.h`:
//! `NVTX_CBID_CORE_RangePushA`, `NVTX_CBID_CORE_RangePop`). Without the variable nothing is opened, and a range is a look at an atomic.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Slots of the table of functions without domains.
const SLOTS: usize = 16;
const PUSH: usize = 9;
const POP: usize = 11;

/// `NVTX_ETID_CALLBACKS` and `NVTX_CB_MODULE_CORE`.
const EXPORT_CALLBACKS: u32 = 1;
const MODULE_CORE: u32 = 1;

/// What the tool puts its functions into.
static FUNCTIONS: [AtomicPtr<c_void>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

static OPENED: Once = Once::new();

/// Addresses of the slots, as the interface hands them out.
struct Addresses([*const AtomicPtr<c_void>; SLOTS + 1]);

// SAFETY: the addresses are of statics and never change.
unsafe impl Sync for Addresses {}

static ADDRESSES: Addresses = {
    let mut addresses = [std::ptr::null(); SLOTS + 1];
    let mut at = 0;
    while at < SLOTS {
        addresses[at] = &raw const FUNCTIONS[at];
        at += 1;
    }
    Addresses(addresses)
};

/// The export table of callbacks: its size, and the function that gives tables of modules.
#[repr(C)]
struct Callbacks {
    size: usize,
    table: unsafe extern "C" fn(u32, *mut *const *const AtomicPtr<c_void>, *mut u32) -> c_int,
}

static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), table };

unsafe extern "C" fn table(module: u32, slots: *mut *const *const AtomicPtr<c_void>, count: *mut u32) -> c_int {
    if module != MODULE_CORE || slots.is_null() || count.is_null() {
        return 0;
    }
    // SAFETY: the tool's pointers are ones to write to.
    unsafe {
        slots.write(ADDRESSES.0.as_ptr());
        count.write(SLOTS as u32);
    }
    1
}

unsafe extern "C" fn export(table: u32) -> *const c_void {
    if table == EXPORT_CALLBACKS { (&raw const CALLBACKS).cast() } else { std::ptr::null() }
}

/// What a tool's library is initialised by.
type Initialise = unsafe extern "C" fn(unsafe extern "C" fn(u32) -> *const c_void) -> c_int;

/// Opens the tool's library, if there is one. Its failures are the tool's to tell: a program runs the same without it.
fn open() {
    let Some(path) = std::env::var_os("NVTX_INJECTION64_PATH") else { return };
    let Ok(path) = std::ffi::CString::new(path.into_encoded_bytes()) else { return };
    // SAFETY: the user asked for this library to be loaded into this program.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return;
    }
    // SAFETY: the library was just opened and is never closed.
    let symbol = unsafe { libc::dlsym(library, c"InitializeInjectionNvtx2".as_ptr()) };
    if symbol.is_null() {
        return;
    }
    // SAFETY: this is the type of that function in NVTX 3.
    let initialise = unsafe { transmute::<*mut c_void, Initialise>(symbol) };
    // SAFETY: the function lives as long as the program.
    unsafe { initialise(export) };
}

/// A range on this thread, until it is dropped.
#[must_use = "a range ends where it is dropped"]
#[derive(Debug)]
pub struct Range(());

/// Begins a range. Tools copy the name before they return.
pub fn range(name: &CStr) -> Range {
    OPENED.call_once(open);
    let push = FUNCTIONS[PUSH].load(Ordering::Acquire);
    if !push.is_null() {
        // SAFETY: whoever filled the slot put a function of its type there; the name ends in a zero.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> c_int>(push)(name.as_ptr()) };
    }
    Range(())
}

impl Drop for Range {
    fn drop(&mut self) {
        let pop = FUNCTIONS[POP].load(Ordering::Acquire);
        if !pop.is_null() {
            // SAFETY: as above.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(pop)() };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

    unsafe extern "C" fn push(name: *const c_char) -> c_int {
        // SAFETY: a tool is given a text that ends in a zero.
        let name = unsafe { CStr::from_ptr(name) };
        SEEN.lock().unwrap().push(name.to_string_lossy().into_owned());
        0
    }

    unsafe extern "C" fn pop() -> c_int {
        SEEN.lock().unwrap().push("pop".to_owned());
        0
    }

    /// What a tool does with what it is handed.
    fn attach() {
        // SAFETY: this is what the interface hands out, used as it says.
        unsafe {
            assert!(export(3).is_null());
            let callbacks = export(EXPORT_CALLBACKS).cast::<Callbacks>();
            assert!((*callbacks).size >= size_of::<Callbacks>());
            let (mut slots, mut count) = (std::ptr::null(), 0);
            assert_eq!(((*callbacks).table)(5, &raw mut slots, &raw mut count), 0);
            assert_eq!(((*callbacks).table)(MODULE_CORE, &raw mut slots, &raw mut count), 1);
            assert_eq!(count as usize, SLOTS);
            let place = |slot: usize| (*slots.add(slot)).cast_mut().cast::<*mut c_void>();
            place(PUSH).write(push as *mut c_void);
            place(POP).write(pop as *mut c_void);
            assert!((*slots.add(SLOTS)).is_null());
        }
    }

    #[test]
    fn ranges_reach_a_tool() {
        drop(range(c"before"));
        attach();
        {
            let _outer = range(c"outer");
            drop(range(c"inner"));
        }
        assert_eq!(*SEEN.lock().unwrap(), ["outer", "inner", "pop", "pop"]);
    }
}
