//! The driver's side: what is loaded when CUDA is initialised, and work that the mock of CUPTI makes.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute_copy;

use crate::fail;

/// A library of the process.
#[derive(Clone, Copy)]
pub(crate) struct Library(*mut c_void);

// SAFETY: a handle may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    pub(crate) fn open(path: &str) -> Option<Self> {
        let path = CString::new(path).ok()?;
        // SAFETY: the path ends in a zero.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// # Safety
    ///
    /// `F` must be a pointer to a function of the type that the library's has.
    pub(crate) unsafe fn function<F>(self, name: &CStr) -> Option<F> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the name ends in a zero, and the caller knows the type.
        unsafe {
            let address = libc::dlsym(self.0, name.as_ptr());
            (!address.is_null()).then(|| transmute_copy(&address))
        }
    }
}

/// The mock, once it is loaded; without it there is no work.
#[derive(Default)]
pub(crate) struct Gpu {
    mock: Option<Library>,
}

macro_rules! call {
    ($gpu:expr, $name:literal, ($($type:ty),*), $($argument:expr),*) => {
        if let Some(mock) = $gpu.mock {
            // SAFETY: this is the type that the mock gives the function.
            let function: Option<unsafe extern "C" fn($($type),*)> = unsafe { mock.function($name) };
            // SAFETY: texts end in a zero.
            function.map(|function| unsafe { function($($argument),*) });
        }
    };
}

impl Gpu {
    /// Loads a libcupti by name or path; its mock makes the work from now on.
    pub(crate) fn load(&mut self, name: &str) {
        self.mock = Some(Library::open(name).unwrap_or_else(|| fail(&format!("cannot load {name}"))));
    }

    pub(crate) fn subscribe_first(&self) {
        extern "C" fn nothing(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}
        type Subscribe = unsafe extern "C" fn(*mut *mut c_void, extern "C" fn(*mut c_void, u32, u32, *const c_void), *mut c_void) -> c_int;
        let mock = self.mock.unwrap_or_else(|| fail("nothing is loaded"));
        // SAFETY: this is the documented type.
        let subscribe: Subscribe = unsafe { mock.function(c"cuptiSubscribe") }.unwrap_or_else(|| fail("no cuptiSubscribe"));
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle goes to a place of ours.
        if unsafe { subscribe(&raw mut handle, nothing, std::ptr::null_mut()) } != 0 {
            fail("the first subscription was refused");
        }
    }

    /// What the driver does in cuInit. Loads the mock that is to make the work if the test names one, after the recorder has chosen.
    pub(crate) fn initialise(&mut self) {
        if let Some(library) = std::env::var("CUDA_INJECTION64_PATH").ok().and_then(|path| Library::open(&path)) {
            // SAFETY: this is the documented type.
            let initialise: Option<unsafe extern "C" fn() -> c_int> = unsafe { library.function(c"InitializeInjection") };
            let initialise = initialise.unwrap_or_else(|| fail("no InitializeInjection"));
            // SAFETY: it takes no arguments.
            if unsafe { initialise() } == 0 {
                fail("InitializeInjection says that it failed");
            }
        }
        if self.mock.is_none()
            && let Ok(path) = std::env::var("MOCK_LIBCUPTI")
        {
            self.mock = Library::open(&path);
        }
    }

    pub(crate) fn launch(&self, name: &CStr, stream: u32) {
        call!(self, c"mock_launch", (*const c_char, u32), name.as_ptr(), stream);
    }

    pub(crate) fn noise(&self) {
        call!(self, c"mock_noise", (),);
    }

    pub(crate) fn all_kinds(&self) {
        self.launch(c"work_kernel", 7);
        call!(self, c"mock_copy", (u64), 4096);
        call!(self, c"mock_set", (u64, u32), 512, 9);
        call!(self, c"mock_peer_copy", (u64), 1 << 20);
        call!(self, c"mock_synchronize", (),);
        call!(self, c"mock_event", (),);
        call!(self, c"mock_overhead", (),);
    }

    pub(crate) fn graph(&self, nodes: u64, launches: u32) {
        let Some(mock) = self.mock else { return };
        // SAFETY: this is the type that the mock gives the function.
        let create: unsafe extern "C" fn(u64) -> u64 = unsafe { mock.function(c"mock_graph_create") }.unwrap_or_else(|| fail("no graphs"));
        // SAFETY: a plain number goes in.
        let first = unsafe { create(nodes) };
        for _ in 0..launches {
            call!(self, c"mock_graph_launch", (*const c_char, u64, u64), c"graph_kernel".as_ptr(), first, nodes);
        }
    }

    pub(crate) fn profiler(&self, on: bool) {
        call!(self, c"mock_profiler", (u32), u32::from(on));
    }

    pub(crate) fn fault(&self, which: &str) {
        let which = CString::new(which).unwrap_or_default();
        call!(self, c"mock_fault", (*const c_char), which.as_ptr());
    }

    pub(crate) fn drop_records(&self, count: u64) {
        call!(self, c"mock_drop", (u64), count);
    }

    pub(crate) fn hold(&self) {
        call!(self, c"mock_hold", (u32), 1);
    }

    pub(crate) fn flush(&self) {
        call!(self, c"cuptiActivityFlushAll", (u32), 0);
    }
}
