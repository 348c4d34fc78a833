//! The library that is loaded into a CUDA program and records what it does on the device.
//!
//! The driver loads it when CUDA is initialised (`CUDA_INJECTION64_PATH`), NVTX when a range is first used (`NVTX_INJECTION64_PATH`), and
//! each calls one of the two functions here. What is recorded follows from environment variables ([`VARIABLES`]); it goes to a file a process
//! in the folder [`DIRECTORY`].
//!
//! # The way through
//!
//! ```text
//! driver: InitializeInjection ──> recorder: choose a libcupti, subscribe, switch records on
//!                                    on_request / on_complete: buffers out and back     (threads of CUPTI and of the program)
//!                                    on_callback: nodes of graphs, cuProfilerStart/Stop
//! NVTX: InitializeInjectionNvtx2 ──> nvtx: our functions into the tables of each module
//!                                    callbacks: one copy into a queue                    (threads of the program)
//! worker: every second, and when something waits: flush CUPTI, decode buffers, write records and events
//! at exit: forced flush, the last records, the end
//! ```
//!
//! # What it must never do
//!
//! Harm its host. No panic leaves an entry, `errno` is kept, nothing is printed, no signal handler is set, no signal is taken. No lock of ours is
//! held while CUPTI or the driver is called. Memory is bounded: what cannot be kept is counted and dropped. When nothing can be recorded (no
//! libcupti, another profiler first, a driver too old) the program runs on, and the file says why; when there can be no file, it
//! just runs on. A forked child is silent until CUDA is initialised in it, then has a file of its own. The library is never
//! unloaded, and `cuptiFinalize` is never called.
//!
//! # Extending it
//!
//! A kind of record: its number and its decoding in `cupti/records.rs`, a family in `longpole-recording`, a line in `recorder.rs`'s list of kinds,
//! and the mock of CUPTI learns to make it.

mod buffers;
mod cupti;
mod device;
mod events;
mod gate;
mod nvtx;
mod output;
mod queue;
mod recorder;
mod settings;
mod sys;
mod worker;

use std::ffi::c_int;

pub use settings::{API, COMMAND_LINE, DELAY, DIRECTORY, DURATION, LIBCUPTI, RANGE, VARIABLES};

use recorder::Recorder;

/// What the driver calls when CUDA is initialised. The answer is always that all went well: whatever did not is in the recording, and a driver that is
/// told otherwise unloads the library.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    sys::guarded(1, || {
        if let Some(recorder) = Recorder::current_or_new() {
            recorder.attach();
        }
        1
    })
}

/// What NVTX calls, once for every module of the program that uses it. Zero leaves NVTX off in that module.
///
/// # Safety
///
/// The function must be the one that NVTX hands to an injected library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: Option<nvtx::GetExportTable>) -> c_int {
    sys::guarded(0, || {
        let Some(get_export_table) = get_export_table else { return 0 };
        if Recorder::current_or_new().is_none() {
            return 0;
        }
        // SAFETY: promised by the caller.
        c_int::from(unsafe { nvtx::install(get_export_table) })
    })
}
