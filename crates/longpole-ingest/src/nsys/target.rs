//! What an export says of the machine and of the session: GPUs, and when the session began. The environment is never looked at.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{DeviceProperties, Problems};

use super::database::Database;
use super::scan::{Scan, Values};
use super::tables;

/// GPUs an export may describe at most; real machines have 16.
const MAX_GPUS: usize = 1024;

const GPU_COLUMNS: &[&str] = &[
    "id",
    "cuDevice",
    "name",
    "totalMemory",
    "smCount",
    "computeMajor",
    "computeMinor",
    "threadsPerWarp",
    "maxWarpsPerSm",
    "maxRegistersPerSm",
    "maxShmemPerSm",
];

/// A GPU.
#[derive(Clone, Debug)]
struct Gpu {
    id: i64,
    cuda: Option<i64>,
    properties: DeviceProperties,
}

/// What is said.
#[derive(Debug, Default)]
pub(super) struct Target {
    gpus: Vec<Gpu>,
    /// (process number, CUDA number) to GPU.
    cuda: HashMap<(i64, i64), i64, FixedState>,
    /// Absolute time of time stamp 0, in nanoseconds since 1970.
    pub(super) base_ns: Option<i64>,
}

impl Target {
    pub(super) fn read(database: &Database, problems: &mut Problems) -> Self {
        let mut target = Self::default();
        if let Some(table) = database.table(tables::GPUS) {
            let scan = Scan::new(database, table, GPU_COLUMNS, None);
            scan.run(1, problems, gpu, |gpus: &mut Vec<Gpu>| {
                target.gpus.append(gpus);
                target.gpus.truncate(MAX_GPUS);
            });
        }
        if let Some(table) = database.table(tables::CUDA_DEVICES) {
            let scan = Scan::new(database, table, &["pid", "cudaId", "gpuId"], None);
            let make = |rows: &mut Vec<[i64; 3]>, values: &mut Values<'_, '_>| {
                if let (Some(pid), Some(cuda), Some(gpu)) = (values.int(0), values.int(1), values.int(2)) {
                    rows.push([pid, cuda, gpu]);
                }
            };
            scan.run(1, problems, make, |rows| target.cuda.extend(rows.drain(..).map(|[pid, cuda, gpu]| ((pid, cuda), gpu))));
        }
        if let Some(table) = database.table(tables::SESSION_START) {
            // Since schema 3.24 times count from the start of the system's clock, and the session began at `systemClockNs` of it.
            let scan = Scan::new(database, table, &["utcEpochNs", "systemClockNs"], None);
            let make = |rows: &mut Vec<i64>, values: &mut Values<'_, '_>| {
                let (utc, clock) = (values.int(0), values.int(1).unwrap_or(0));
                rows.extend(utc.and_then(|utc| utc.checked_sub(clock)).filter(|base| *base > 0));
            };
            scan.run(1, problems, make, |rows| target.base_ns = target.base_ns.or(rows.first().copied()));
        }
        target
    }

    /// The number of the GPU that a process calls `device`, if the export says.
    pub(super) fn gpu_of(&self, pid: i64, device: i64) -> Option<i64> {
        self.cuda.get(&(pid, device)).copied()
    }

    /// The hardware that a process calls `device`.
    pub(super) fn properties(&self, pid: Option<i64>, device: i64) -> Option<&DeviceProperties> {
        let any = || self.cuda.iter().filter(|((_, cuda), _)| *cuda == device).map(|(_, gpu)| *gpu).min();
        let by_id = |id: i64| self.gpus.iter().find(|gpu| gpu.id == id);
        let mapped = pid.and_then(|pid| self.gpu_of(pid, device)).or_else(any).and_then(by_id);
        let by_cuda = || self.gpus.iter().find(|gpu| gpu.cuda == Some(device));
        mapped.or_else(by_cuda).or_else(|| by_id(device)).map(|gpu| &gpu.properties)
    }
}

fn gpu(gpus: &mut Vec<Gpu>, values: &mut Values<'_, '_>) {
    let Some(id) = values.int(0) else { return };
    let name = values.text(2).map(|name| String::from_utf8_lossy(name).chars().take(256).collect());
    // Zero is what is written where nothing is known.
    let mut known = |column| values.small(column).filter(|value| *value > 0);
    let (warp_size, warps) = (known(7), known(8));
    let properties = DeviceProperties {
        name,
        sm_count: known(4),
        compute_capability: known(5).map(|major| (major, 0)),
        warp_size,
        max_threads_per_sm: warp_size.zip(warps).and_then(|(size, warps)| size.checked_mul(warps)),
        registers_per_sm: known(9),
        shared_bytes_per_sm: known(10).map(u64::from),
        memory_bytes: None,
        peak_memory_bytes_per_s: None,
    };
    let memory_bytes = values.int(3).and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes > 0);
    let compute_capability = properties.compute_capability.zip(values.small(6)).map(|((major, _), minor)| (major, minor));
    let properties = DeviceProperties { memory_bytes, compute_capability, ..properties };
    gpus.push(Gpu { id, cuda: values.int(1), properties });
}
