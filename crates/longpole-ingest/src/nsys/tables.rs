//! The tables of an export that are read, and their columns. All of both are optional.

pub(super) const STRINGS: &str = "StringIds";
pub(super) const KERNELS: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
pub(super) const COPIES: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
pub(super) const FILLS: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
pub(super) const GRAPHS: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
pub(super) const CALLS: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
pub(super) const SYNCS: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
pub(super) const EVENTS: &str = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
pub(super) const RANGES: &str = "NVTX_EVENTS";
pub(super) const OVERHEADS: [&str; 2] = ["PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"];
pub(super) const OS_CALLS: &str = "OSRT_API";
pub(super) const SAMPLES: &str = "COMPOSITE_EVENTS";
/// The functions of each sample, innermost first.
pub(super) const CHAINS: &str = "SAMPLING_CALLCHAINS";
pub(super) const PROCESSES: &str = "PROCESSES";
pub(super) const THREADS: &str = "ThreadNames";
pub(super) const GPUS: &str = "TARGET_INFO_GPU";
pub(super) const CUDA_DEVICES: &str = "TARGET_INFO_CUDA_DEVICE";
pub(super) const SESSION_START: &str = "TARGET_INFO_SESSION_START_TIME";
/// Which processes have CUDA contexts: since schema 3.7, and before.
pub(super) const CONTEXTS: [&str; 2] = ["TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"];

/// Where device work stands; also what says that a database is an export.
pub(super) const DEVICE_WORK: [&str; 4] = [KERNELS, COPIES, FILLS, GRAPHS];

/// Whether a table is one that is read.
pub(super) fn is_read(name: &str) -> bool {
    const OTHERS: [&str; 13] =
        [STRINGS, CALLS, SYNCS, EVENTS, RANGES, OS_CALLS, SAMPLES, CHAINS, PROCESSES, THREADS, GPUS, CUDA_DEVICES, SESSION_START];
    [&OTHERS[..], &DEVICE_WORK, &OVERHEADS, &CONTEXTS].into_iter().flatten().any(|known| *known == name)
}

/// Tables with events that no analysis uses, and what they hold.
pub(super) const UNUSED: [(&str, &str); 7] = [
    ("SCHED_EVENTS", "thread scheduling"),
    ("GPU_METRICS", "GPU metrics"),
    ("GENERIC_EVENTS", "generic events"),
    ("CUDA_GPU_MEMORY_USAGE_EVENTS", "GPU memory usage"),
    ("CUBLAS_EVENTS", "cuBLAS calls"),
    ("CUDNN_EVENTS", "cuDNN calls"),
    ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", "page faults of unified memory"),
];

/// Columns that all device work has.
macro_rules! with_place {
    ($($more:literal),* $(,)?) => {
        &["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId", $($more),*]
    };
}
pub(super) const KERNEL_COLUMNS: &[&str] = with_place!(
    "graphId",
    "demangledName",
    "shortName",
    "mangledName",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
);
pub(super) const COPY_COLUMNS: &[&str] = with_place!("bytes", "copyKind", "srcKind", "dstKind");
pub(super) const FILL_COLUMNS: &[&str] = with_place!("bytes", "memKind");
pub(super) const GRAPH_COLUMNS: &[&str] = with_place!("graphId", "graphExecId");
pub(super) const CALL_COLUMNS: &[&str] = &["start", "end", "globalTid", "correlationId", "nameId"];
pub(super) const SYNC_COLUMNS: &[&str] =
    &["start", "end", "deviceId", "contextId", "streamId", "globalPid", "syncType", "eventId", "eventSyncId"];
pub(super) const EVENT_COLUMNS: &[&str] = &["streamId", "correlationId", "globalPid", "eventId", "eventSyncId"];
pub(super) const RANGE_COLUMNS: &[&str] = &["start", "end", "eventType", "text", "globalTid", "textId", "domainId"];
pub(super) const OVERHEAD_COLUMNS: &[&str] = &["start", "end", "nameId"];
pub(super) const OS_CALL_COLUMNS: &[&str] = &["start", "end", "globalTid", "nameId"];
pub(super) const SAMPLE_COLUMNS: &[&str] = &["start", "globalTid", "id"];
pub(super) const CHAIN_COLUMNS: &[&str] = &["id", "symbol", "module", "unresolved"];
