//! CUPTI, by hand: the few functions that are called, looked up in whichever libcupti is chosen, and the numbers they take.
//!
//! None of NVIDIA's headers is used. Types are those of the documented C interface: enums are 32-bit integers, handles are pointers.

pub(crate) mod apis;
pub(crate) mod find;
pub(crate) mod records;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use crate::sys::{self, Library};

/// `CUPTI_SUCCESS`.
pub(crate) const SUCCESS: c_int = 0;
/// `CUPTI_ERROR_INSUFFICIENT_PRIVILEGES`: the driver lets only administrators profile.
pub(crate) const NOT_PERMITTED: c_int = 35;
/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`: another profiler was first.
pub(crate) const SUBSCRIBER_TAKEN: c_int = 39;

/// The oldest CUPTI whose records are decoded: 12.0. Its kernels carry graphs, nodes and clusters where later ones do.
pub(crate) const OLDEST_VERSION: u32 = 18;

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: unfinished records are given up too.
pub(crate) const FLUSH_FORCED: u32 = 1;

/// `CUPTI_CB_DOMAIN_DRIVER_API`.
pub(crate) const DOMAIN_DRIVER: u32 = 1;
/// `CUPTI_CB_DOMAIN_RUNTIME_API`.
pub(crate) const DOMAIN_RUNTIME: u32 = 2;
/// `CUPTI_CB_DOMAIN_RESOURCE`.
pub(crate) const DOMAIN_RESOURCE: u32 = 3;

/// `CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED`.
pub(crate) const GRAPH_NODE_CREATED: u32 = 13;
/// `CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED`: a graph was copied, as happens when it is made executable.
pub(crate) const GRAPH_NODE_CLONED: u32 = 20;

/// `cuProfilerStart`, `cuProfilerStop` of the driver.
pub(crate) const DRIVER_PROFILER: (u32, u32) = (308, 309);
/// `cudaProfilerStart`, `cudaProfilerStop` of the runtime.
pub(crate) const RUNTIME_PROFILER: (u32, u32) = (171, 172);

/// `void (void *user, domain, callback id, const void *data)`.
pub(crate) type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);
/// `void (uint8_t **buffer, size_t *bytes, size_t *most records)`.
pub(crate) type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `void (context, stream, uint8_t *buffer, size_t bytes, size_t valid bytes)`.
pub(crate) type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// `CUpti_CallbackData`: what a callback about an API call is given. Only its first member is read.
#[repr(C)]
pub(crate) struct ApiCallback {
    /// 0 when the call begins, 1 when it returns.
    pub(crate) site: u32,
}

/// `CUpti_ResourceData`.
#[repr(C)]
pub(crate) struct ResourceCallback {
    pub(crate) context: *mut c_void,
    pub(crate) stream: *mut c_void,
    pub(crate) descriptor: *const c_void,
}

/// `CUpti_GraphData`, which the descriptor points to when the resource is of a graph.
#[repr(C)]
pub(crate) struct GraphCallback {
    pub(crate) graph: *mut c_void,
    pub(crate) original_graph: *mut c_void,
    pub(crate) node: *mut c_void,
    pub(crate) original_node: *mut c_void,
    pub(crate) node_type: u32,
    pub(crate) dependency: *mut c_void,
    pub(crate) executable: *mut c_void,
}

/// The functions of one libcupti.
pub(crate) struct Cupti {
    pub(crate) version: u32,
    pub(crate) path: Vec<u8>,
    set_thread_id_type: Option<unsafe extern "C" fn(u32) -> c_int>,
    subscribe: unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> c_int,
    enable_callback: unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> c_int,
    set_attribute: Option<unsafe extern "C" fn(u32, *mut usize, *mut c_void) -> c_int>,
    register: unsafe extern "C" fn(Request, Complete) -> c_int,
    enable: unsafe extern "C" fn(u32) -> c_int,
    disable: unsafe extern "C" fn(u32) -> c_int,
    flush: unsafe extern "C" fn(u32) -> c_int,
    next_record: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int,
    dropped: Option<unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> c_int>,
    timestamp: unsafe extern "C" fn(*mut u64) -> c_int,
    result_text: Option<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>,
    callback_name: Option<unsafe extern "C" fn(u32, u32, *mut *const c_char) -> c_int>,
    enable_runtime_api: Option<unsafe extern "C" fn(u32, u8) -> c_int>,
    enable_driver_api: Option<unsafe extern "C" fn(u32, u8) -> c_int>,
    graph_node_id: Option<unsafe extern "C" fn(*mut c_void, *mut u64) -> c_int>,
    graph_id: Option<unsafe extern "C" fn(*mut c_void, *mut u32) -> c_int>,
}

// SAFETY: functions of CUPTI may be called from any thread; nothing else is in it.
unsafe impl Send for Cupti {}
// SAFETY: as above.
unsafe impl Sync for Cupti {}

impl Cupti {
    /// Looks the functions up; `None` when the library is none that can record.
    pub(crate) fn of(library: Library) -> Option<Self> {
        // SAFETY: each name is looked up as the type that CUPTI documents for it.
        unsafe {
            let get_version: unsafe extern "C" fn(*mut u32) -> c_int = library.function(c"cuptiGetVersion")?;
            let mut version = 0;
            if get_version(&raw mut version) != SUCCESS {
                return None;
            }
            Some(Self {
                version,
                path: sys::file_of(get_version as *const c_void).unwrap_or_default(),
                set_thread_id_type: library.function(c"cuptiSetThreadIdType"),
                subscribe: library.function(c"cuptiSubscribe")?,
                enable_callback: library.function(c"cuptiEnableCallback")?,
                set_attribute: library.function(c"cuptiActivitySetAttribute"),
                register: library.function(c"cuptiActivityRegisterCallbacks")?,
                enable: library.function(c"cuptiActivityEnable")?,
                disable: library.function(c"cuptiActivityDisable")?,
                flush: library.function(c"cuptiActivityFlushAll")?,
                next_record: library.function(c"cuptiActivityGetNextRecord")?,
                dropped: library.function(c"cuptiActivityGetNumDroppedRecords"),
                timestamp: library.function(c"cuptiGetTimestamp")?,
                result_text: library.function(c"cuptiGetResultString"),
                callback_name: library.function(c"cuptiGetCallbackName"),
                enable_runtime_api: library.function(c"cuptiActivityEnableRuntimeApi"),
                enable_driver_api: library.function(c"cuptiActivityEnableDriverApi"),
                graph_node_id: library.function(c"cuptiGetGraphNodeId"),
                graph_id: library.function(c"cuptiGetGraphId"),
            })
        }
    }

    /// Has threads named as the operating system does, not by pthread handles.
    pub(crate) fn name_threads_by_system(&self) {
        const SYSTEM: u32 = 1;
        if let Some(set) = self.set_thread_id_type {
            // SAFETY: a plain number goes in.
            unsafe { set(SYSTEM) };
        }
    }

    /// Becomes the subscriber; the handle, or the code of the failure.
    pub(crate) fn subscribe(&self, callback: Callback) -> Result<Subscriber, c_int> {
        let mut handle = ptr::null_mut();
        // SAFETY: the callback lives as long as the process, and the handle goes to a place of ours.
        match unsafe { (self.subscribe)(&raw mut handle, callback, ptr::null_mut()) } {
            SUCCESS => Ok(Subscriber(handle)),
            code => Err(code),
        }
    }

    /// Asks for one callback.
    pub(crate) fn enable_callback(&self, subscriber: Subscriber, domain: u32, id: u32) -> c_int {
        // SAFETY: the handle is one that `subscribe` gave.
        unsafe { (self.enable_callback)(1, subscriber.0, domain, id) }
    }

    /// Says where buffers come from and go to, and that they come empty.
    pub(crate) fn register(&self, request: Request, complete: Complete) -> c_int {
        const ZEROED_OUT_ACTIVITY_BUFFER: u32 = 5;
        let (mut size, mut yes) = (1, 1u8);
        if let Some(set) = self.set_attribute {
            // SAFETY: the attribute is a byte, and so many bytes are here. A library that does not know it clears buffers itself.
            unsafe { set(ZEROED_OUT_ACTIVITY_BUFFER, &raw mut size, (&raw mut yes).cast()) };
        }
        // SAFETY: both live as long as the process.
        unsafe { (self.register)(request, complete) }
    }

    /// Switches a kind of records.
    pub(crate) fn switch(&self, kind: u32, on: bool) -> c_int {
        // SAFETY: a plain number goes in.
        unsafe { if on { (self.enable)(kind) } else { (self.disable)(kind) } }
    }

    /// Switches the records of one function; `None` when this library cannot (before CUPTI 12.5).
    pub(crate) fn switch_function(&self, domain: u32, id: u32, on: bool) -> Option<c_int> {
        let switch = if domain == DOMAIN_RUNTIME { self.enable_runtime_api } else { self.enable_driver_api };
        // SAFETY: plain numbers go in; an unknown one is refused.
        switch.map(|switch| unsafe { switch(id, u8::from(on)) })
    }

    /// Has buffers delivered: with `0` the finished records, with [`FLUSH_FORCED`] all of them.
    pub(crate) fn flush(&self, flag: u32) -> c_int {
        // SAFETY: a plain number goes in; our own callbacks are called meanwhile, and no lock of ours is held.
        unsafe { (self.flush)(flag) }
    }

    /// The record after `record` in a buffer, null for the first; an error code at the end and at damage.
    ///
    /// # Safety
    ///
    /// The buffer must be one that CUPTI has delivered with so many valid bytes, and `record` null or what the call before gave.
    pub(crate) unsafe fn next_record(&self, buffer: *mut u8, valid: usize, record: &mut *mut u8) -> c_int {
        // SAFETY: promised by the caller.
        unsafe { (self.next_record)(buffer, valid, record) }
    }

    /// Records that found no buffer since the last time this was asked.
    pub(crate) fn dropped(&self) -> u64 {
        let mut count = 0;
        let Some(dropped) = self.dropped else { return 0 };
        // SAFETY: no context and stream zero ask for all of them; the count goes to a place of ours.
        match unsafe { dropped(ptr::null_mut(), 0, &raw mut count) } {
            SUCCESS => count as u64,
            _ => 0,
        }
    }

    /// The clock that activities are stamped with, ns.
    pub(crate) fn timestamp(&self) -> Option<u64> {
        let mut time = 0;
        // SAFETY: the time goes to a place of ours.
        (unsafe { (self.timestamp)(&raw mut time) } == SUCCESS && time != 0).then_some(time)
    }

    /// What a code means.
    pub(crate) fn result_text(&self, code: c_int) -> Vec<u8> {
        let mut text = ptr::null();
        match self.result_text {
            // SAFETY: the text is static in CUPTI and ends in a zero.
            Some(result_text) if unsafe { result_text(code, &raw mut text) } == SUCCESS && !text.is_null() => {
                // SAFETY: as above.
                unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
            }
            _ => format!("CUPTI error {code}").into_bytes(),
        }
    }

    /// The name of a function, with the version that CUPTI puts behind names of the runtime.
    pub(crate) fn function_name(&self, domain: u32, id: u32) -> Option<&'static [u8]> {
        let mut name = ptr::null();
        // SAFETY: the name is static in CUPTI and ends in a zero.
        let code = unsafe { self.callback_name?(domain, id, &raw mut name) };
        // SAFETY: as above; names are far below this limit.
        (code == SUCCESS && !name.is_null()).then(|| unsafe { sys::text(name, 256) })
    }

    /// The number that kernels name a graph's node by.
    pub(crate) fn graph_node_id(&self, node: *mut c_void) -> Option<u64> {
        let mut id = 0;
        let ask = self.graph_node_id.filter(|_| !node.is_null())?;
        // SAFETY: called inside the callback that named the node, which is alive then.
        (unsafe { ask(node, &raw mut id) } == SUCCESS).then_some(id)
    }

    /// The number of a graph.
    pub(crate) fn graph_id(&self, graph: *mut c_void) -> Option<u32> {
        let mut id = 0;
        let ask = self.graph_id.filter(|_| !graph.is_null())?;
        // SAFETY: called inside the callback that named the graph, which is alive then.
        (unsafe { ask(graph, &raw mut id) } == SUCCESS).then_some(id)
    }
}

/// The handle of a subscription.
#[derive(Clone, Copy)]
pub(crate) struct Subscriber(*mut c_void);
