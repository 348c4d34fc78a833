//! The program's side of NVTX version 3, written from its documented interface: tables of function pointers that an injected library fills.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::transmute;

use crate::fail;
use crate::gpu::Library;

type Function = Option<unsafe extern "C" fn()>;

/// Slots of the tables of the plain functions and of those with domains.
const SLOTS: usize = 16;

/// A part of the program (the executable, a shared library) that uses NVTX.
pub(crate) struct Module {
    number: usize,
    core: [UnsafeCell<Function>; SLOTS],
    core2: [UnsafeCell<Function>; SLOTS],
}

// SAFETY: slots are written while the module initialises and only read afterwards.
unsafe impl Sync for Module {}

impl Module {
    const fn new(number: usize) -> Self {
        Self { number, core: [const { UnsafeCell::new(None) }; SLOTS], core2: [const { UnsafeCell::new(None) }; SLOTS] }
    }
}

static MODULES: [Module; 2] = [Module::new(0), Module::new(1)];

/// Addresses of the slots, as the interface hands them out: module by module, plain functions and those with domains.
struct Addresses(UnsafeCell<[[[*mut Function; SLOTS]; 2]; 2]>);

// SAFETY: written before anybody reads.
unsafe impl Sync for Addresses {}

static ADDRESSES: Addresses = Addresses(UnsafeCell::new([[[std::ptr::null_mut(); SLOTS]; 2]; 2]));

pub(crate) fn modules() -> [&'static Module; 2] {
    for module in &MODULES {
        for slot in 0..SLOTS {
            // SAFETY: the program has one thread yet.
            unsafe {
                (*ADDRESSES.0.get())[module.number][0][slot] = module.core[slot].get();
                (*ADDRESSES.0.get())[module.number][1][slot] = module.core2[slot].get();
            }
        }
    }
    [&MODULES[0], &MODULES[1]]
}

#[repr(C)]
struct Callbacks {
    size: usize,
    table: unsafe extern "C" fn(u32, *mut *mut *mut Function, *mut u32) -> c_int,
}

/// The functions that each module has of its own, since the interface gives them no argument that names it.
macro_rules! exports {
    ($number:literal, $table:ident, $export:ident) => {
        unsafe extern "C" fn $table(module: u32, slots: *mut *mut *mut Function, count: *mut u32) -> c_int {
            let part = match module {
                1 => 0,
                5 => 1,
                _ => return 0,
            };
            // SAFETY: the caller's pointers are ones to write to, and the addresses have been filled.
            unsafe {
                slots.write((*ADDRESSES.0.get())[$number][part].as_mut_ptr());
                count.write(SLOTS as u32);
            }
            1
        }

        unsafe extern "C" fn $export(id: u32) -> *const c_void {
            static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), table: $table };
            if id == 1 { (&raw const CALLBACKS).cast() } else { std::ptr::null() }
        }
    };
}
exports!(0, table0, export0);
exports!(1, table1, export1);

/// `nvtxEventAttributes_t`.
#[repr(C)]
struct Attributes {
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

impl Attributes {
    fn new(message_type: i32, message: *const c_void) -> Self {
        Self {
            version: 3,
            size: size_of::<Self>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type,
            message,
        }
    }
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Calls a slot if it is filled, as NVTX's own functions do.
macro_rules! call {
    ($slot:expr, fn($($type:ty),*) $(-> $result:ty)?, $($argument:expr),*) => {{
        // SAFETY: slots are only written while the module initialises.
        let function = unsafe { *$slot.get() };
        function.map(|function| {
            // SAFETY: whoever filled the slot put a function of its type there; texts end in a zero, attributes are whole.
            unsafe { transmute::<unsafe extern "C" fn(), unsafe extern "C" fn($($type),*) $(-> $result)?>(function)($($argument),*) }
        })
    }};
}

impl Module {
    /// What NVTX does at the first call of a module.
    pub(crate) fn initialise(&self) {
        type Export = unsafe extern "C" fn(u32) -> *const c_void;
        let Some(library) = std::env::var("NVTX_INJECTION64_PATH").ok().and_then(|path| Library::open(&path)) else { return };
        // SAFETY: this is the documented type.
        let initialise: Option<unsafe extern "C" fn(Export) -> c_int> = unsafe { library.function(c"InitializeInjectionNvtx2") };
        let initialise = initialise.unwrap_or_else(|| fail("no InitializeInjectionNvtx2"));
        let export: Export = if self.number == 0 { export0 } else { export1 };
        // SAFETY: this is what NVTX passes.
        let answer = unsafe { initialise(export) };
        let recording = std::env::var_os("LONGPOLE_RECORD_DIR").is_some();
        if (answer != 0) != recording {
            fail(&format!("InitializeInjectionNvtx2 answers {answer}"));
        }
    }

    pub(crate) fn push(&self, name: &str) -> Option<c_int> {
        let name = text(name);
        call!(self.core[9], fn(*const c_char) -> c_int, name.as_ptr())
    }

    pub(crate) fn pop(&self) -> Option<c_int> {
        call!(self.core[11], fn() -> c_int,)
    }

    pub(crate) fn mark(&self, name: &str) {
        let name = text(name);
        call!(self.core[2], fn(*const c_char), name.as_ptr());
    }

    /// Every function once or more, with all that it may carry.
    pub(crate) fn every_call(&self) {
        type Domain = *mut c_void;
        const ASCII: i32 = 1;
        const UNICODE: i32 = 2;
        const REGISTERED: i32 = 3;
        let wide: Vec<u32> = "weit ∞".chars().map(u32::from).chain([0]).collect();
        let a = text("narrow");
        let expect = |got: Option<c_int>, level: c_int| {
            if got != Some(level) {
                fail(&format!("level {got:?}, not {level}"));
            }
        };
        call!(self.core[12], fn(u32, *const c_char), 5, text("category a").as_ptr());
        call!(self.core[13], fn(u32, *const u32), 6, wide.as_ptr());
        call!(self.core[14], fn(u32, *const c_char), std::process::id(), text("main thread").as_ptr());
        call!(self.core[15], fn(u32, *const u32), 77, wide.as_ptr());
        call!(self.core[2], fn(*const c_char), a.as_ptr());
        call!(self.core[3], fn(*const u32), wide.as_ptr());
        let mut attributes = Attributes::new(ASCII, a.as_ptr().cast());
        (attributes.category, attributes.color_type, attributes.color) = (5, 1, 0xff11_2233);
        for (kind, bits) in [
            (1, 7),
            (2, (-7i64).cast_unsigned()),
            (3, 0.5f64.to_bits()),
            (4, 8),
            (5, u64::from((-8i32).cast_unsigned())),
            (6, 1.5f32.to_bits().into()),
        ] {
            (attributes.payload_type, attributes.payload) = (kind, bits);
            call!(self.core[1], fn(*const Attributes), &raw const attributes);
        }
        // Attributes that are shorter than the version we know.
        attributes.size = 8;
        call!(self.core[1], fn(*const Attributes), &raw const attributes);
        let wide_message = Attributes::new(UNICODE, wide.as_ptr().cast());
        expect(call!(self.core[8], fn(*const Attributes) -> c_int, &raw const wide_message), 0);
        expect(call!(self.core[9], fn(*const c_char) -> c_int, a.as_ptr()), 1);
        expect(call!(self.core[10], fn(*const u32) -> c_int, wide.as_ptr()), 2);
        for level in [2, 1, 0] {
            expect(self.pop(), level);
        }
        let first = call!(self.core[4], fn(*const Attributes) -> u64, &raw const wide_message);
        let second = call!(self.core[5], fn(*const c_char) -> u64, a.as_ptr());
        let third = call!(self.core[6], fn(*const u32) -> u64, wide.as_ptr());
        // Ends in another order than starts.
        for range in [second, first, third] {
            call!(self.core[7], fn(u64), range.unwrap_or_else(|| fail("no range")));
        }
        if first == second || second == third {
            fail("ranges have the same number");
        }
        let domain = call!(self.core2[12], fn(*const c_char) -> Domain, text("engine").as_ptr()).unwrap_or_else(|| fail("no domain"));
        let other = call!(self.core2[13], fn(*const u32) -> Domain, wide.as_ptr()).unwrap_or_else(|| fail("no domain"));
        if domain.is_null() || domain == other {
            fail("domains are the same");
        }
        call!(self.core2[8], fn(Domain, u32, *const c_char), domain, 5, text("category of engine").as_ptr());
        call!(self.core2[9], fn(Domain, u32, *const u32), domain, 6, wide.as_ptr());
        let string = call!(self.core2[10], fn(Domain, *const c_char) -> *mut c_void, domain, text("registered").as_ptr());
        let wide_string = call!(self.core2[11], fn(Domain, *const u32) -> *mut c_void, domain, wide.as_ptr());
        let mut registered = Attributes::new(REGISTERED, string.unwrap_or(std::ptr::null_mut()));
        registered.category = 5;
        call!(self.core2[1], fn(Domain, *const Attributes), domain, &raw const registered);
        expect(call!(self.core2[4], fn(Domain, *const Attributes) -> c_int, domain, &raw const registered), 0);
        registered.message = wide_string.unwrap_or(std::ptr::null_mut());
        expect(call!(self.core2[4], fn(Domain, *const Attributes) -> c_int, other, &raw const registered), 0);
        expect(call!(self.core2[5], fn(Domain) -> c_int, domain), 0);
        expect(call!(self.core2[5], fn(Domain) -> c_int, other), 0);
        let range = call!(self.core2[2], fn(Domain, *const Attributes) -> u64, domain, &raw const registered);
        call!(self.core2[3], fn(Domain, u64), domain, range.unwrap_or_else(|| fail("no range")));
        // Handles that are none, and texts that are null.
        let wrong = std::ptr::without_provenance_mut::<c_void>(0xdead_0000);
        registered.message = wrong;
        call!(self.core2[1], fn(Domain, *const Attributes), wrong, &raw const registered);
        call!(self.core[2], fn(*const c_char), std::ptr::null());
        call!(self.core[1], fn(*const Attributes), std::ptr::null());
        call!(self.core2[14], fn(Domain), domain);
    }
}
