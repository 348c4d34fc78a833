//! The recorder's own thread: it takes what the program's threads and CUPTI leave for it, and writes.
//!
//! Once a second it asks CUPTI for finished records and writes everything out, so that a process that is killed, or ends without handlers
//! (`_exit`), loses a second at most.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use longpole_recording::{Api, Clock, Context, Cost, Dropped, End, Family, Header, Process, Refused, StringId, Writer};

use crate::cupti::records::{Decoded, decode, kind_of, least_bytes};
use crate::cupti::{self, DOMAIN_DRIVER, DOMAIN_RUNTIME, FLUSH_FORCED, find};
use crate::events;
use crate::output::Output;
use crate::queue::Batch;
use crate::recorder::{Attached, Recorder, Refusal, Stop};
use crate::{device, sys};

/// How often everything is written out.
const TICK: Duration = Duration::from_secs(1);
/// How often the clocks are compared.
const CLOCKS: Duration = Duration::from_mins(1);
/// Buffers that are ready before the first kernel.
const PREPARED_BUFFERS: usize = 3;
/// The longest name of a kernel; templates make long ones.
const MOST_NAME_BYTES: usize = 64 << 10;
/// Files of one process number: a program that starts another in its place keeps the number.
const MOST_FILES: u32 = 1000;
/// Contexts that are noted.
const MOST_CONTEXTS: usize = 1024;
/// Times that two clocks may differ and still be called one: reading them takes less.
const SAME_CLOCK_NS: i64 = 1_000_000;

/// Starts the thread. It takes no signals: those are the program's.
pub(crate) fn spawn(recorder: &'static Recorder) {
    let started =
        sys::without_signals(|| thread::Builder::new().name("longpole".into()).stack_size(512 << 10).spawn(move || run(recorder)));
    if started.is_err() {
        done(recorder);
    }
}

/// Lets the end of the program go on.
fn done(recorder: &Recorder) {
    recorder.wake.lock().unwrap_or_else(PoisonError::into_inner).done = true;
    recorder.woken.notify_all();
}

/// The thread.
pub(crate) fn run(recorder: &'static Recorder) {
    // Whatever goes wrong here costs the recording, not the program.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mut worker = Worker::new(recorder);
        recorder.buffers.prepare(PREPARED_BUFFERS);
        worker.work();
    }));
    done(recorder);
}

/// The state of the thread.
pub(crate) struct Worker {
    pub(crate) recorder: &'static Recorder,
    /// `None` when no file could be made: then everything is taken and forgotten.
    pub(crate) writer: Option<Writer<Output>>,
    batch: Batch,
    described: bool,
    attached_written: bool,
    contexts: HashMap<u32, u32>,
    pub(crate) clock_offset_ns: i64,
    next_clocks: Instant,
    /// When the window of time opens and closes.
    opens: Option<Instant>,
    closes: Option<Instant>,
    exit_ns: u64,
    unknown: u64,
    damaged: u64,
}

impl Worker {
    fn new(recorder: &'static Recorder) -> Self {
        let now = Instant::now();
        let mut worker = Self {
            recorder,
            writer: create(recorder),
            batch: Batch::default(),
            described: false,
            attached_written: false,
            contexts: HashMap::new(),
            clock_offset_ns: 0,
            next_clocks: now,
            opens: None,
            closes: None,
            exit_ns: 0,
            unknown: 0,
            damaged: 0,
        };
        worker.write_process();
        worker.flush_writer();
        worker
    }

    fn work(&mut self) {
        let mut next_tick = Instant::now() + TICK;
        loop {
            let deadline = [Some(next_tick), self.opens, self.closes].into_iter().flatten().min().unwrap_or(next_tick);
            if let Some(stop) = self.wait(deadline) {
                self.end(stop.status);
                return;
            }
            self.attach();
            self.turn_window();
            self.drain();
            if Instant::now() >= next_tick {
                self.tick();
                next_tick = Instant::now() + TICK;
            }
        }
    }

    /// Waits until there is something to do, or the process ends.
    fn wait(&self, deadline: Instant) -> Option<Stop> {
        let mut wake = self.recorder.wake.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if wake.stop.is_some() {
                return wake.stop;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if wake.now || left.is_zero() {
                wake.now = false;
                return None;
            }
            wake = self.recorder.woken.wait_timeout(wake, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes that CUPTI is there, once.
    fn attach(&mut self) {
        if self.attached_written || self.recorder.attached.get().is_none() {
            return;
        }
        self.attached_written = true;
        self.write_process();
        self.compare_clocks();
        let now = Instant::now();
        let settings = &self.recorder.settings;
        let delay = Duration::from_millis(settings.delay_ms.unwrap_or(0));
        self.opens = settings.delay_ms.and_then(|_| now.checked_add(delay));
        self.closes = settings.duration_ms.and_then(|duration| now.checked_add(delay)?.checked_add(Duration::from_millis(duration)));
        self.flush_writer();
    }

    /// Opens and closes the window of time.
    fn turn_window(&mut self) {
        let now = Instant::now();
        if self.opens.is_some_and(|opens| now >= opens) {
            self.opens = None;
            self.recorder.set_window(true);
        }
        if self.closes.is_some_and(|closes| now >= closes) {
            self.closes = None;
            self.recorder.set_window(false);
        }
    }

    fn tick(&mut self) {
        if let Some(attached) = self.recorder.attached.get() {
            attached.cupti.flush(0);
            if Instant::now() >= self.next_clocks {
                self.compare_clocks();
            }
        }
        self.describe_devices();
        self.drain();
        self.write_losses();
        self.write_cost();
        self.flush_writer();
    }

    fn end(&mut self, status: Option<i32>) {
        let begun = sys::monotonic_ns();
        self.attach();
        self.describe_devices();
        self.drain();
        if let Some(attached) = self.recorder.attached.get() {
            self.compare_clocks();
            attached.cupti.flush(FLUSH_FORCED);
            self.drain();
        } else if !self.recorder.attaching.load(Ordering::Acquire) {
            let detail = b"CUDA was not initialised in this process".to_vec();
            self.recorder.refuse(Refusal { reason: Refused::NO_DRIVER, code: 0, detail, time: sys::realtime_ns() });
            self.drain();
        }
        self.write_losses();
        self.flush_writer();
        self.exit_ns = sys::monotonic_ns() - begun;
        self.write_cost();
        if let Some(writer) = self.writer.take() {
            // Nobody is left who could be told.
            let _ = writer.finish(&End { time: sys::realtime_ns(), status });
        }
    }

    /// Takes everything that waits.
    fn drain(&mut self) {
        let refusals = std::mem::take(&mut *self.recorder.refusals.lock().unwrap_or_else(PoisonError::into_inner));
        for refusal in refusals {
            if let Some(writer) = &mut self.writer {
                let detail = writer.string(&refusal.detail);
                writer.refused(&Refused { reason: refusal.reason, code: refusal.code, detail, time: refusal.time });
            }
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.recorder.queue.drain(&mut batch, |batch| {
            for event in &batch.events {
                events::write(self, batch, event);
            }
        });
        self.batch = batch;
        while let Some(full) = self.recorder.buffers.pop() {
            if let Some(attached) = self.recorder.attached.get() {
                self.read_buffer(attached, full.buffer.address(), full.valid);
            }
            self.recorder.buffers.recycle(full.buffer);
        }
    }

    /// Decodes a buffer.
    fn read_buffer(&mut self, attached: &Attached, buffer: *mut u8, valid: usize) {
        let end = buffer.addr() + valid;
        let mut record = null_mut();
        let mut last = buffer.addr();
        loop {
            // SAFETY: the buffer is one that CUPTI has delivered, and the record the one it gave before.
            if unsafe { attached.cupti.next_record(buffer, valid, &mut record) } != cupti::SUCCESS {
                return;
            }
            let at = record.addr();
            // Records follow one another; a library that goes back or beyond the end has lost its way.
            let first = last == buffer.addr() && at == last;
            if !(first || at > last) || at + 4 > end {
                self.damaged += 1;
                return;
            }
            last = at;
            // SAFETY: the record lies within the buffer, up to whose valid end CUPTI has written.
            let bytes = unsafe { std::slice::from_raw_parts(record, end - at) };
            match least_bytes(kind_of(bytes)) {
                Some(least) if bytes.len() >= least => {
                    if let Some(decoded) = decode(bytes, attached.cupti.version) {
                        self.write_record(attached, decoded);
                    }
                }
                Some(_) => self.damaged += 1,
                None => self.unknown += 1,
            }
            if first {
                // So that the same record coming again is noticed.
                last = at + 1;
            }
        }
    }

    fn write_record(&mut self, attached: &Attached, decoded: Decoded) {
        let Some(writer) = &mut self.writer else { return };
        match decoded {
            Decoded::Kernel(mut kernel, name) => {
                // SAFETY: CUPTI keeps names of kernels, which end in a zero, as long as their records are around.
                let name = unsafe { sys::text(std::ptr::with_exposed_provenance(name as usize), MOST_NAME_BYTES) };
                kernel.name = writer.string(name);
                writer.kernel(&kernel);
                self.note_context(kernel.context, kernel.device);
            }
            Decoded::Memcpy(copy) => {
                writer.memcpy(&copy);
                self.note_context(copy.context, copy.device);
            }
            Decoded::Memset(set) => {
                writer.memset(&set);
                self.note_context(set.context, set.device);
            }
            Decoded::PeerCopy(copy) => writer.peer_copy(&copy),
            Decoded::Api(mut api) => {
                let domain = if api.domain == Api::RUNTIME { DOMAIN_RUNTIME } else { DOMAIN_DRIVER };
                // Where single functions cannot be switched, all of them come.
                if !self.recorder.settings.all_api_calls && !attached.wanted.has(domain, api.cbid) {
                    return;
                }
                api.name = attached.cupti.function_name(domain, api.cbid).map_or(StringId::NONE, |name| writer.string(name));
                writer.api(&api);
            }
            Decoded::Overhead(overhead) => writer.overhead(&overhead),
            Decoded::Sync(sync) => writer.sync(&sync),
            Decoded::Event(event) => writer.event_record(&event),
        }
    }

    /// Notes which device a context is on, when it is first seen.
    fn note_context(&mut self, context: u32, device: u32) {
        if self.contexts.get(&context) == Some(&device) || self.contexts.len() >= MOST_CONTEXTS {
            return;
        }
        self.contexts.insert(context, device);
        if let Some(writer) = &mut self.writer {
            writer.context(&Context { context, device, null_stream: None });
        }
    }

    /// Reads all clocks at once.
    fn compare_clocks(&mut self) {
        self.next_clocks = Instant::now() + CLOCKS;
        let Some(attached) = self.recorder.attached.get() else { return };
        // The closest of a few readings: a thread may be set aside between two of them.
        let readings = (0..5).filter_map(|_| {
            let before = sys::monotonic_ns();
            let cupti = attached.cupti.timestamp()?;
            let realtime = sys::realtime_ns();
            let after = sys::monotonic_ns();
            Some(Clock { cupti, realtime, monotonic: u64::midpoint(before, after), uncertainty: after - before })
        });
        let Some(clock) = readings.min_by_key(|clock| clock.uncertainty) else { return };
        // On a current driver CUPTI's clock is the wall clock, and times that we read need no change.
        let offset = clock.cupti.cast_signed().wrapping_sub(clock.realtime.cast_signed());
        self.clock_offset_ns = if offset.abs() < SAME_CLOCK_NS { 0 } else { offset };
        if let Some(writer) = &mut self.writer {
            writer.clock(&clock);
        }
    }

    fn describe_devices(&mut self) {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.described && self.attached_written) else { return };
        let Some(devices) = device::describe(|name| writer.string(name)) else { return };
        self.described = true;
        for device in &devices {
            writer.device(device);
        }
    }

    fn write_losses(&mut self) {
        let lost_by_cupti = self.recorder.attached.get().map_or(0, |attached| attached.cupti.dropped());
        let losses = [
            (0, Dropped::CUPTI, lost_by_cupti),
            (0, Dropped::QUEUE, self.recorder.lost_records.swap(0, Ordering::Relaxed)),
            (Family::Nvtx.number(), Dropped::QUEUE, self.recorder.queue.take_dropped()),
            (0, Dropped::UNKNOWN_KIND, std::mem::take(&mut self.unknown)),
            (0, Dropped::DAMAGED, std::mem::take(&mut self.damaged)),
        ];
        let Some(writer) = &mut self.writer else { return };
        for (family, reason, count) in losses {
            if count > 0 {
                writer.dropped(&Dropped { family, count, reason, time: sys::realtime_ns() });
            }
        }
    }

    fn write_cost(&mut self) {
        let (events, event_ns) = self.recorder.queue.cost();
        let Some(writer) = &mut self.writer else { return };
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let cost = Cost {
            callbacks: events + load(&self.recorder.cupti_calls),
            callback_ns: event_ns + load(&self.recorder.cupti_call_ns),
            pages: writer.pages_written(),
            page_ns: sys::thread_cpu_ns(),
            bytes: writer.bytes_written(),
            setup_ns: load(&self.recorder.setup_ns),
            exit_ns: self.exit_ns,
            buffer_bytes: self.recorder.buffers.peak_bytes(),
        };
        writer.cost(&cost);
    }

    /// Writes the process; again when CUPTI is known, the last one counting.
    fn write_process(&mut self) {
        let settings = &self.recorder.settings;
        let attached = self.recorder.attached.get();
        let Some(writer) = &mut self.writer else { return };
        let executable = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_os_string()));
        let executable = executable.map_or(StringId::NONE, |name| writer.string(name.as_bytes()));
        let command_line = if settings.command_line {
            let words: Vec<_> = std::env::args_os().map(std::ffi::OsString::into_vec).collect();
            writer.string(&words.join(&b' '))
        } else {
            StringId::NONE
        };
        let range = if settings.range_text.is_empty() { StringId::NONE } else { writer.string(&settings.range_text) };
        let process = Process {
            pid: self.recorder.pid,
            parent: std::os::unix::process::parent_id(),
            executable,
            command_line,
            recorder: writer.string(env!("CARGO_PKG_VERSION").as_bytes()),
            cuda_driver: find::driver_version(),
            cuda_runtime: find::runtime_version(),
            cupti: attached.map(|attached| attached.cupti.version),
            api: if settings.all_api_calls { Process::API_ALL } else { Process::API_LAUNCH },
            range,
            delay_ms: settings.delay_ms,
            duration_ms: settings.duration_ms,
            rank: attached.and_then(|attached| attached.rank),
            world_size: attached.and_then(|attached| attached.world_size),
        };
        writer.process(&process);
    }

    fn flush_writer(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.flush();
            // The writer counts what it loses, and there is nobody here to tell.
            drop(writer.take_error());
        }
    }
}

/// Makes the file. The first name that is free: a program that replaces itself keeps its number.
fn create(recorder: &Recorder) -> Option<Writer<Output>> {
    let header = Header { pid: recorder.pid, started_at_ns: sys::realtime_ns() };
    for number in 1..=MOST_FILES {
        let name = if number == 1 { format!("{}.lprec", recorder.pid) } else { format!("{}-{number}.lprec", recorder.pid) };
        match Output::create(&recorder.settings.directory.join(name)) {
            Ok(output) => return Writer::new(output, header).ok(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}
