//! The driver for NVIDIA devices: one device, one stream, CUDA events and graphs, and NVML beside them.
//!
//! Everything is opened when it is first needed: the CUDA driver by [`Cuda::open`], NVRTC by [`Cuda::compile`], cuBLASLt by [`Matmul::new`], NVML
//! for the state of the device. What is missing is a sentence that says what to do. Without NVML the state is unknown and nothing else suffers.
//!
//! The raw layer of `cudarc` is used, since its safe layer records events of its own around every use of a buffer, which a benchmark would
//! measure.

mod engine;
mod kernel;
mod matmul;
mod memory;
mod peaks;
mod state;

use std::time::Instant;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{result, sys};

use crate::measure::{Driver, Enqueue, Error, Timed};
use crate::protocol::Device;

pub use engine::{Mark, Pinned};
pub use kernel::{Arg, Function, Grid, Module};
pub use matmul::{Matmul, Number, bf16_bytes, f32_of_bf16};
pub use memory::{Buffer, Sets};
pub use peaks::peaks;
use state::Monitor;

/// The oldest driver whose functions are used: `cuEventElapsedTime_v2` came with CUDA 12.8.
const MIN_DRIVER: i32 = 12_080;

/// A device with a stream of its own. It is used from one thread.
pub struct Cuda {
    device: sys::CUdevice,
    stream: sys::CUstream,
    events: [sys::CUevent; 2],
    /// Major and minor compute capability.
    capability: (i32, i32),
    /// Bytes of shared memory that a block may ask for.
    block_shared_bytes: u32,
    about: Device,
    monitor: Option<Monitor>,
    began: Instant,
    launched: u64,
}

/// A graph ready to be launched, which belongs to the device it was recorded on.
pub struct Graph {
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: both handles were made by `Cuda::record`, are destroyed here only, and nothing is done about a failure.
        unsafe {
            let _ = result::graph::exec_destroy(self.exec);
            let _ = result::graph::destroy(self.graph);
        }
    }
}

/// A failed call by its name.
fn failed(call: &'static str) -> impl Fn(result::DriverError) -> Error {
    move |error| Error::call(call, said(error))
}

/// Name and meaning of an error of the driver.
fn said(error: result::DriverError) -> String {
    let text = |text: Result<&std::ffi::CStr, _>| text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{} ({})", text(error.error_name()), text(error.error_string()))
}

impl Cuda {
    /// Opens a device by its number as CUDA counts (so `CUDA_VISIBLE_DEVICES` is heeded).
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        // SAFETY: it opens a library whose constructors are those of the driver.
        if !unsafe { sys::is_culib_present() } {
            let text =
                "the CUDA driver (libcuda.so) was not found: this machine has no NVIDIA driver, or its folder is not in LD_LIBRARY_PATH";
            return Err(Error::Missing(text.to_owned()));
        }
        let mut version = 0;
        // SAFETY: the function writes one integer.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(failed("cuDriverGetVersion"))?;
        let shown = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
        if version < MIN_DRIVER {
            let text = format!("the NVIDIA driver supports CUDA {}, {} is needed", shown(version), shown(MIN_DRIVER));
            return Err(Error::Missing(text));
        }
        result::init().map_err(failed("cuInit"))?;
        let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX)).map_err(failed("cuDeviceGet"))?;
        // SAFETY: the device is valid, the context is released in `drop`.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(failed("cuDevicePrimaryCtxRetain"))?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }.map_err(failed("cuCtxSetCurrent"))?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed("cuStreamCreate"))?;
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(failed("cuEventCreate"));
        let events = [event()?, event()?];
        // SAFETY: the device is valid.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) }.ok();
        let count = |which| attribute(which).and_then(|value| u32::try_from(value).ok());
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR).unwrap_or(0),
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR).unwrap_or(0),
        );
        let block_shared_bytes = count(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).unwrap_or(48 << 10);
        let uuid = result::device::get_uuid(device).ok().map(uuid_text);
        let monitor = uuid.as_deref().and_then(Monitor::open);
        let about = Device {
            name: result::device::get_name(device).map_err(failed("cuDeviceGetName"))?,
            uuid,
            driver: monitor.as_ref().and_then(Monitor::driver),
            cuda: Some(shown(version)),
            sm_count: count(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            // SAFETY: the device is valid.
            memory_bytes: unsafe { result::device::total_mem(device) }.ok().map(|bytes| bytes as u64),
            l2_bytes: count(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE).map(u64::from),
        };
        Ok(Self { device, stream, events, capability, block_shared_bytes, about, monitor, began: Instant::now(), launched: 0 })
    }

    /// Major and minor compute capability.
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Bytes of shared memory that a block may ask for ([`Cuda::allow_shared`]).
    pub fn block_shared_bytes(&self) -> u32 {
        self.block_shared_bytes
    }

    /// Work in the middle of recording, which a failed recording must not leave behind.
    fn capture(&mut self, work: &mut Enqueue<'_, Self>) -> Result<sys::CUgraph, Error> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is this driver's own.
        unsafe { result::stream::begin_capture(self.stream, mode) }.map_err(failed("cuStreamBeginCapture"))?;
        let done = work(self);
        // SAFETY: the stream is being captured.
        let graph = unsafe { result::stream::end_capture(self.stream) }.map_err(failed("cuStreamEndCapture"));
        match (done, graph) {
            (Ok(()), graph) => graph,
            (Err(error), Err(_)) => Err(error),
            (Err(error), Ok(graph)) => {
                // SAFETY: the graph was just made and is used nowhere.
                let _ = unsafe { result::graph::destroy(graph) };
                Err(error)
            }
        }
    }
}

/// A UUID as NVML and nvidia-smi write it.
fn uuid_text(uuid: sys::CUuuid) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(uuid.bytes.map(|byte| byte as u8)));
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: the handles are this driver's own; what still runs on the stream is waited for by the release of the context, and nothing
        // is done about a failure.
        unsafe {
            let _ = result::stream::synchronize(self.stream);
            for event in self.events {
                let _ = result::event::destroy(event);
            }
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

impl Driver for Cuda {
    type Graph = Graph;

    fn device(&self) -> Device {
        self.about.clone()
    }

    fn free_bytes(&mut self) -> Option<u64> {
        result::mem_get_info().ok().map(|(free, _)| free as u64)
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn launched(&self) -> u64 {
        self.launched
    }

    fn synchronize(&mut self) -> Result<(), Error> {
        // SAFETY: the stream is this driver's own.
        unsafe { result::stream::synchronize(self.stream) }.map_err(failed("cuStreamSynchronize"))
    }

    fn timed(&mut self, lead: &mut Enqueue<'_, Self>, work: &mut Enqueue<'_, Self>) -> Result<Timed, Error> {
        let [begin, end] = self.events;
        lead(self)?;
        // SAFETY: events and stream are this driver's own.
        unsafe { result::event::record(begin, self.stream) }.map_err(failed("cuEventRecord"))?;
        work(self)?;
        // SAFETY: as above.
        unsafe { result::event::record(end, self.stream) }.map_err(failed("cuEventRecord"))?;
        let state = self.monitor.as_mut().map(Monitor::read).unwrap_or_default();
        // SAFETY: as above.
        unsafe { result::event::synchronize(end) }.map_err(failed("cuEventSynchronize"))?;
        // SAFETY: both events were recorded on one stream and the second has passed.
        let milliseconds = unsafe { result::event::elapsed(begin, end) }.map_err(failed("cuEventElapsedTime"))?;
        Ok(Timed { time_ps: (f64::from(milliseconds) * 1e9).round() as u64, state })
    }

    fn record(&mut self, work: &mut Enqueue<'_, Self>) -> Result<Graph, Error> {
        let graph = self.capture(work)?;
        // SAFETY: the graph was just made.
        let exec = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        let exec = exec.map_err(|error| {
            // SAFETY: the graph is used nowhere.
            let _ = unsafe { result::graph::destroy(graph) };
            failed("cuGraphInstantiate")(error)
        })?;
        let graph = Graph { graph, exec };
        // SAFETY: graph and stream are valid.
        unsafe { result::graph::upload(graph.exec, self.stream) }.map_err(failed("cuGraphUpload"))?;
        Ok(graph)
    }

    fn replay(&mut self, graph: &Graph) -> Result<(), Error> {
        // SAFETY: the graph lives as long as its handle; its kernels were launched on buffers of a body that outlives it.
        unsafe { result::graph::launch(graph.exec, self.stream) }.map_err(failed("cuGraphLaunch"))
    }

    fn profiler(&mut self, on: bool) -> Result<(), Error> {
        if on {
            cudarc::driver::profiler_start().map_err(failed("cuProfilerStart"))
        } else {
            cudarc::driver::profiler_stop().map_err(failed("cuProfilerStop"))
        }
    }
}
