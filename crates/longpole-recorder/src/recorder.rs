//! The recorder of a process: made when the driver or NVTX first calls, never taken down while the process lives.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use longpole_recording::{RangeState, Refused};

use crate::buffers::{Buffer, Buffers, Full, RESERVE};
use crate::cupti::apis::Wanted;
use crate::cupti::records::kind;
use crate::cupti::{
    self, ApiCallback, Cupti, DOMAIN_DRIVER, DOMAIN_RESOURCE, DOMAIN_RUNTIME, GRAPH_NODE_CLONED, GRAPH_NODE_CREATED, GraphCallback,
    OLDEST_VERSION, ResourceCallback, find,
};
use crate::gate::Gate;
use crate::nvtx::RangeWatch;
use crate::queue::{Event, Queue, Text, What};
use crate::settings::{Range, Settings};
use crate::sys::{self, guarded};
use crate::worker;

/// The causes of a switch, as [`RangeState`] numbers them.
pub(crate) const CAUSE_PROFILER: u8 = RangeState::PROFILER;
pub(crate) const CAUSE_NVTX: u8 = RangeState::NVTX;
pub(crate) const CAUSE_TIMER: u8 = RangeState::TIMER;

/// How long the end of a program may be held up until everything is written. A GPU that hangs must not keep its program from ending.
const LONGEST_EXIT: Duration = Duration::from_secs(10);

/// Kinds of records that are switched on and off; calls come on top.
const KINDS: [u32; 5] = [kind::CONCURRENT_KERNEL, kind::MEMCPY, kind::MEMSET, kind::PEER_COPY, kind::OVERHEAD];

/// Kinds that come with all calls only: each of them makes every launch some 3 microseconds longer, whether or not anything waits
/// (`docs/results/record-h200-variants.txt`). The calls that wait are recorded in any case.
const KINDS_WITH_ALL_CALLS: [u32; 2] = [kind::SYNCHRONIZATION, kind::EVENT];

/// Where launchers tell a process its rank: torchrun, Open MPI, MPICH, Slurm.
const RANK: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
/// Where they tell how many there are.
const WORLD_SIZE: [&str; 4] = ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];

/// Functions that stay on: `cudaProfilerStart` and `cuProfilerStart`.
const ANCHORS: [(u32, u32); 2] = [(DOMAIN_RUNTIME, cupti::RUNTIME_PROFILER.0), (DOMAIN_DRIVER, cupti::DRIVER_PROFILER.0)];

/// Why nothing, or not all, is recorded.
pub(crate) struct Refusal {
    pub(crate) reason: u8,
    pub(crate) code: c_int,
    pub(crate) detail: Vec<u8>,
    pub(crate) time: u64,
}

/// The end of the process.
#[derive(Clone, Copy)]
pub(crate) struct Stop {
    /// Its status, when known.
    pub(crate) status: Option<c_int>,
}

/// What the worker waits for.
#[derive(Default)]
pub(crate) struct Wake {
    /// There is something to do before the next second.
    pub(crate) now: bool,
    /// The process ends.
    pub(crate) stop: Option<Stop>,
    /// Everything is written.
    pub(crate) done: bool,
}

/// The recorder.
pub(crate) struct Recorder {
    pub(crate) pid: u32,
    pub(crate) settings: Settings,
    pub(crate) queue: Queue,
    pub(crate) buffers: Buffers,
    pub(crate) range_watch: RangeWatch,
    pub(crate) gate: Gate,
    pub(crate) attached: OnceLock<Attached>,
    pub(crate) refusals: Mutex<Vec<Refusal>>,
    pub(crate) setup_ns: AtomicU64,
    pub(crate) lost_records: AtomicU64,
    /// Calls of CUPTI, and what they cost the threads they were made on, ns.
    pub(crate) cupti_calls: AtomicU64,
    pub(crate) cupti_call_ns: AtomicU64,
    pub(crate) attaching: AtomicBool,
    pub(crate) wake: Mutex<Wake>,
    pub(crate) woken: Condvar,
}

/// The CUPTI that is used.
pub(crate) struct Attached {
    pub(crate) cupti: Cupti,
    pub(crate) wanted: Wanted,
    /// Whether calls are switched one by one, not all at once.
    by_function: bool,
    /// Kinds of records beside calls.
    kinds: Vec<u32>,
    /// Place in a distributed run.
    pub(crate) rank: Option<u32>,
    pub(crate) world_size: Option<u32>,
}

/// The recorder of this process; null before the first call and in a forked child.
static CURRENT: AtomicPtr<Recorder> = AtomicPtr::new(null_mut());

impl Recorder {
    /// The recorder, if there is one in this process.
    pub(crate) fn current() -> Option<&'static Self> {
        // SAFETY: recorders are leaked, so what is not null lives for ever.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
    }

    /// The recorder, made if there is none yet; `None` when nothing is to be recorded.
    pub(crate) fn current_or_new() -> Option<&'static Self> {
        if let Some(recorder) = Self::current() {
            return Some(recorder);
        }
        let settings = Settings::read(|name| std::env::var_os(name))?;
        let new = Box::into_raw(Box::new(Self::new(settings)));
        match CURRENT.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // SAFETY: just made, and never freed from here on.
                let recorder = unsafe { &*new };
                sys::stay_loaded(worker::run as *const c_void);
                // What went wrong here is nothing to print on the program's standard error.
                std::panic::set_hook(Box::new(|_| {}));
                // SAFETY: the function may be called in any child.
                unsafe { libc::pthread_atfork(None, None, Some(forked)) };
                at_exit();
                worker::spawn(recorder);
                Some(recorder)
            }
            Err(other) => {
                // SAFETY: another thread was first, so nobody has seen this one.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: recorders are never freed.
                unsafe { other.as_ref() }
            }
        }
    }

    fn new(settings: Settings) -> Self {
        let ranged = settings.range != Range::Whole;
        let gate = Gate::new(settings.delay_ms.is_none(), ranged);
        Self {
            pid: sys::pid(),
            settings,
            queue: Queue::default(),
            buffers: Buffers::default(),
            range_watch: RangeWatch::new(),
            gate,
            attached: OnceLock::new(),
            refusals: Mutex::default(),
            setup_ns: AtomicU64::new(0),
            lost_records: AtomicU64::new(0),
            cupti_calls: AtomicU64::new(0),
            cupti_call_ns: AtomicU64::new(0),
            attaching: AtomicBool::new(false),
            wake: Mutex::default(),
            woken: Condvar::new(),
        }
    }

    /// Connects to CUPTI; called while the driver initialises, before there is any context.
    pub(crate) fn attach(&'static self) {
        if self.attaching.swap(true, Ordering::AcqRel) {
            return;
        }
        let begun = sys::monotonic_ns();
        match self.choose() {
            Ok(cupti) => {
                let wanted = if self.settings.all_api_calls { Wanted::default() } else { Wanted::of(&cupti) };
                let by_function = !self.settings.all_api_calls && anchor(&cupti);
                let more: &[u32] = if self.settings.all_api_calls { &KINDS_WITH_ALL_CALLS } else { &[] };
                let kinds = [&KINDS, more].concat();
                self.attached.get_or_init(|| Attached {
                    cupti,
                    wanted,
                    by_function,
                    kinds,
                    rank: number(RANK),
                    world_size: number(WORLD_SIZE),
                });
                self.gate.set_ready();
                self.follow();
                // Once more: handlers run last come, first served, and ours has to run before those that CUPTI has set up meanwhile.
                at_exit();
            }
            Err(refusal) => self.refuse(refusal),
        }
        self.setup_ns.fetch_add(sys::monotonic_ns() - begun, Ordering::Relaxed);
        self.wake_worker();
    }

    /// The first library that takes us as its subscriber.
    fn choose(&self) -> Result<Cupti, Refusal> {
        let refused = |reason, code, detail| Refusal { reason, code, detail, time: sys::realtime_ns() };
        let mut last = refused(Refused::NO_CUPTI, 0, b"no libcupti.so.13 or libcupti.so.12 was found".to_vec());
        if let Some(path) = &self.settings.libcupti {
            last.detail = format!("{} is no CUPTI library", path.display()).into_bytes();
        }
        for cupti in find::candidates(self.settings.libcupti.as_deref()) {
            let at = |text: &[u8]| [text, b" (", &cupti.path, b")"].concat();
            if cupti.version < OLDEST_VERSION {
                last = refused(Refused::VERSION, 0, at(format!("CUPTI's version {} is older than CUDA 12.0's", cupti.version).as_bytes()));
                continue;
            }
            cupti.name_threads_by_system();
            let subscriber = match cupti.subscribe(on_callback) {
                Ok(subscriber) => subscriber,
                Err(code @ cupti::SUBSCRIBER_TAKEN) => return Err(refused(Refused::SUBSCRIBER_TAKEN, code, at(&cupti.result_text(code)))),
                Err(code) => {
                    let reason = if code == cupti::NOT_PERMITTED { Refused::NOT_PERMITTED } else { Refused::FAILED };
                    last = refused(reason, code, at(&cupti.result_text(code)));
                    continue;
                }
            };
            let code = cupti.register(on_request, on_complete);
            if code != cupti::SUCCESS {
                return Err(refused(Refused::FAILED, code, at(&cupti.result_text(code))));
            }
            let profiler = [(DOMAIN_DRIVER, cupti::DRIVER_PROFILER), (DOMAIN_RUNTIME, cupti::RUNTIME_PROFILER)];
            let profiler = profiler.into_iter().flat_map(|(domain, (start, stop))| [(domain, start), (domain, stop)]);
            let nodes = [(DOMAIN_RESOURCE, GRAPH_NODE_CREATED), (DOMAIN_RESOURCE, GRAPH_NODE_CLONED)];
            for (domain, id) in profiler.chain(nodes) {
                // A callback that this library does not have is one less.
                cupti.enable_callback(subscriber, domain, id);
            }
            return Ok(cupti);
        }
        Err(last)
    }

    /// Notes why nothing, or not all, is recorded.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
    }

    /// Whether events are taken now.
    pub(crate) fn records_now(&self) -> bool {
        self.gate.wanted()
    }

    /// Sends an event to the worker.
    ///
    /// # Safety
    ///
    /// The text must be null or end in a zero.
    pub(crate) unsafe fn push(&self, event: Event, text: Text) {
        // SAFETY: promised by the caller.
        if unsafe { self.queue.push(event, text) } {
            self.wake_worker();
        }
    }

    pub(crate) fn wake_worker(&self) {
        self.wake.lock().unwrap_or_else(PoisonError::into_inner).now = true;
        self.woken.notify_all();
    }

    /// A range that is recorded begins.
    pub(crate) fn open_range(&self, cause: u8) {
        match cause {
            CAUSE_NVTX => self.gate.enter(),
            _ => self.gate.set_range(true),
        }
        self.follow();
        self.switched(true, cause);
    }

    /// A range that is recorded ends.
    pub(crate) fn close_range(&self, cause: u8) {
        self.switched(false, cause);
        match cause {
            CAUSE_NVTX => self.gate.leave(),
            _ => self.gate.set_range(false),
        }
        self.follow();
        self.wake_worker();
    }

    /// Opens or closes the window of time.
    pub(crate) fn set_window(&self, open: bool) {
        self.gate.set_window(open);
        self.follow();
        self.switched(open, CAUSE_TIMER);
    }

    fn switched(&self, on: bool, cause: u8) {
        let event = Event { id: u64::from(cause), ..Event::now(if on { What::SwitchOn } else { What::SwitchOff }) };
        // SAFETY: there is no text.
        unsafe { self.push(event, Text::None) };
    }

    /// Switches CUPTI as the gate says.
    fn follow(&self) {
        let Some(attached) = self.attached.get() else { return };
        self.gate.follow(|on| {
            for (what, code) in attached.switch(on) {
                let text = attached.cupti.result_text(code);
                let detail = [format!("records of kind {what}: ").as_bytes(), &text].concat();
                let reason = if code == cupti::NOT_PERMITTED { Refused::NOT_PERMITTED } else { Refused::FAILED };
                self.refuse(Refusal { reason, code, detail, time: sys::realtime_ns() });
            }
        });
    }

    /// Has everything written, and waits for it, but not for ever.
    fn finish(&self, status: Option<c_int>) {
        let mut wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        wake.stop.get_or_insert(Stop { status });
        self.woken.notify_all();
        let waited = self.woken.wait_timeout_while(wake, LONGEST_EXIT, |wake| !wake.done);
        drop(waited);
    }
}

/// The first variable that is set, if it is a number. Read while the driver initialises, not at load: programs set them for themselves too.
fn number(variables: [&str; 4]) -> Option<u32> {
    variables.into_iter().find_map(std::env::var_os)?.to_str()?.parse().ok()
}

/// Switches the marks of ranges on; whether functions can be switched one by one. They can be switched on later only if one was on when the first
/// context was made, and these are called too seldom to be noticed.
fn anchor(cupti: &Cupti) -> bool {
    ANCHORS.into_iter().all(|(domain, id)| cupti.switch_function(domain, id, true) == Some(cupti::SUCCESS))
}

impl Attached {
    /// Switches everything; what did not work, by kind and code.
    fn switch(&self, on: bool) -> Vec<(u32, c_int)> {
        let calls: &[u32] = if self.by_function { &[] } else { &[kind::RUNTIME, kind::DRIVER] };
        let mut failed = Vec::new();
        for &kind in self.kinds.iter().chain(calls) {
            let code = self.cupti.switch(kind, on);
            if code != cupti::SUCCESS && on {
                failed.push((kind, code));
            }
        }
        if self.by_function {
            for &(domain, id) in self.wanted.functions() {
                if on || !ANCHORS.contains(&(domain, id)) {
                    // A function that cannot be switched is one that is not recorded.
                    let _ = self.cupti.switch_function(domain, id, on);
                }
            }
        }
        failed
    }
}

/// In a forked child there is no worker, and the file is the parent's: it starts anew if CUDA is initialised in it, and is silent otherwise.
/// Nothing here may allocate or lock.
extern "C" fn forked() {
    CURRENT.store(null_mut(), Ordering::Release);
    sys::forked();
}

/// Has [`finish`](Recorder::finish) called when the program ends.
fn at_exit() {
    extern "C" fn with_status(status: c_int, _: *mut c_void) {
        guarded((), || finish_here(Some(status)));
    }
    extern "C" fn without_status() {
        guarded((), || finish_here(None));
    }
    fn finish_here(status: Option<c_int>) {
        // A child that was made without the C library's knowledge has the recorder of its parent.
        if let Some(recorder) = Recorder::current().filter(|recorder| recorder.pid == sys::pid()) {
            recorder.finish(status);
        }
    }
    // glibc tells the status; where there is no on_exit, it is not known.
    type OnExit = unsafe extern "C" fn(extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int;
    // SAFETY: the name ends in a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"on_exit".as_ptr()) };
    if address.is_null() {
        // SAFETY: the function stays loaded.
        unsafe { libc::atexit(without_status) };
    } else {
        // SAFETY: this is on_exit's type, and the function stays loaded.
        unsafe { std::mem::transmute::<*mut c_void, OnExit>(address)(with_status, null_mut()) };
    }
}

/// CUPTI wants a buffer.
extern "C" fn on_request(buffer: *mut *mut u8, bytes: *mut usize, most_records: *mut usize) {
    guarded((), || {
        let begun = sys::monotonic_ns();
        let recorder = Recorder::current();
        let new = recorder.map_or_else(Buffer::new, |recorder| recorder.buffers.empty());
        let new = new.map(|buffer| (buffer.into_address(), crate::buffers::BUFFER_BYTES)).or_else(|| RESERVE.take());
        let (address, size) = new.unwrap_or((null_mut(), 0));
        // SAFETY: CUPTI passes places for the answers; zero records means as many as fit.
        unsafe {
            buffer.write(address);
            bytes.write(size);
            most_records.write(0);
        }
        if let Some(recorder) = recorder {
            recorder.count_call(begun);
        }
    });
}

/// CUPTI gives a buffer back.
extern "C" fn on_complete(_context: *mut c_void, _stream: u32, buffer: *mut u8, _bytes: usize, valid: usize) {
    guarded((), || {
        if buffer.is_null() {
            return;
        }
        let begun = sys::monotonic_ns();
        let recorder = Recorder::current();
        if RESERVE.give_back(buffer) {
            // Memory was out; these records are decoded by nobody.
            if let (Some(recorder), true) = (recorder, valid > 0) {
                recorder.lose(buffer, valid);
            }
            return;
        }
        // SAFETY: CUPTI gives back what `on_request` handed out, once.
        let returned = unsafe { Buffer::from_address(buffer) };
        let Some(recorder) = recorder else { return returned.release() };
        let valid = valid.min(crate::buffers::BUFFER_BYTES);
        if recorder.buffers.is_full() {
            recorder.lose(buffer, valid);
            recorder.buffers.recycle(returned);
        } else {
            // Empty ones too: only the worker has time to make one ready again.
            recorder.buffers.push(Full { buffer: returned, valid });
            recorder.wake_worker();
        }
        recorder.count_call(begun);
    });
}

impl Recorder {
    /// Counts the records of a buffer that nobody will decode.
    fn lose(&self, buffer: *mut u8, valid: usize) {
        let Some(attached) = self.attached.get() else { return };
        let mut record = null_mut();
        let mut count = 0;
        // Every record takes eight bytes at least, so this ends even if the library goes in circles.
        // SAFETY: the buffer is one that CUPTI has delivered.
        while count < (valid / 8) as u64 && unsafe { attached.cupti.next_record(buffer, valid, &mut record) } == cupti::SUCCESS {
            count += 1;
        }
        self.lost_records.fetch_add(count, Ordering::Relaxed);
    }

    fn count_call(&self, begun: u64) {
        self.cupti_calls.fetch_add(1, Ordering::Relaxed);
        self.cupti_call_ns.fetch_add(sys::monotonic_ns() - begun, Ordering::Relaxed);
    }
}

/// CUPTI reports something that was asked for.
extern "C" fn on_callback(_user: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    guarded((), || {
        let Some(recorder) = Recorder::current() else { return };
        if data.is_null() {
            return;
        }
        let begun = sys::monotonic_ns();
        match domain {
            DOMAIN_RESOURCE => {
                // SAFETY: callbacks of this domain pass this structure.
                let resource = unsafe { &*data.cast::<ResourceCallback>() };
                recorder.graph_node(id, resource.descriptor.cast());
            }
            DOMAIN_DRIVER | DOMAIN_RUNTIME => {
                // SAFETY: callbacks of these domains pass this structure.
                let site = unsafe { (*data.cast::<ApiCallback>()).site };
                recorder.profiler_call(domain, id, site);
            }
            _ => {}
        }
        recorder.count_call(begun);
    });
}

impl Recorder {
    fn graph_node(&self, id: u32, graph: *const GraphCallback) {
        let Some(attached) = self.attached.get() else { return };
        if graph.is_null() || !(id == GRAPH_NODE_CREATED || id == GRAPH_NODE_CLONED) {
            return;
        }
        // SAFETY: callbacks about graphs pass this structure.
        let graph = unsafe { &*graph };
        let Some(node) = attached.cupti.graph_node_id(graph.node) else { return };
        let original = if id == GRAPH_NODE_CLONED { attached.cupti.graph_node_id(graph.original_node) } else { None };
        let graph = attached.cupti.graph_id(graph.graph);
        let event = Event { id: node, original: original.unwrap_or(0), domain: graph.unwrap_or(0), ..Event::now(What::GraphNode) };
        // SAFETY: there is no text.
        unsafe { self.push(event, Text::None) };
    }

    /// Recording begins when the call that starts it returns, and ends when the call that stops it is made.
    fn profiler_call(&self, domain: u32, id: u32, site: u32) {
        let (start, stop) = if domain == DOMAIN_DRIVER { cupti::DRIVER_PROFILER } else { cupti::RUNTIME_PROFILER };
        let on = match (id, site) {
            (id, 1) if id == start => true,
            (id, 0) if id == stop => false,
            _ => return,
        };
        if self.settings.range != Range::Profiler {
            // Kept all the same: whoever reads the recording may ask for that stretch. One of the two domains is enough.
            if domain == DOMAIN_DRIVER {
                self.switched(on, CAUSE_PROFILER);
            }
            return;
        }
        // The runtime's call makes the driver's, and either may come alone.
        match (on, self.gate.in_range()) {
            (true, false) => self.open_range(CAUSE_PROFILER),
            (false, true) => self.close_range(CAUSE_PROFILER),
            _ => {}
        }
    }
}
