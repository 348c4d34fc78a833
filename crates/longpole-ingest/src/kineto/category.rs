//! Event categories of all eras, as one table.

/// What an event's `cat` says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// An operator.
    HostOp,
    /// An operator or, by its name, an annotation: 2021 traces had one category for both.
    HostOpOrAnnotation,
    /// A named host range.
    Annotation,
    /// A runtime or driver call.
    Api,
    /// A kernel.
    Kernel,
    /// A copy.
    Memcpy,
    /// A fill.
    Memset,
    /// A Python call.
    Python,
    /// Profiler overhead.
    Overhead,
    /// A synchronisation, described beside the API call that made it.
    Sync,
    /// Bookkeeping of the profiler or a mirror of something else: read past, and outside the window.
    Bookkeeping,
    /// Known, timed, not kept: it only widens the window.
    TimedOnly,
    /// Not in the table.
    Unknown,
}

impl Category {
    /// Looks up a category name. Names ending in `_runtime` or `_driver` are API calls of some back end; other unknown
    /// names are judged by their arguments later.
    pub(super) fn of(cat: &[u8]) -> Self {
        match cat {
            b"cpu_op" => Self::HostOp,
            b"Operator" => Self::HostOpOrAnnotation,
            b"user_annotation" => Self::Annotation,
            b"cuda_runtime" | b"cuda_driver" | b"Runtime" => Self::Api,
            b"kernel" | b"Kernel" => Self::Kernel,
            b"gpu_memcpy" | b"Memcpy" => Self::Memcpy,
            b"gpu_memset" | b"Memset" => Self::Memset,
            b"python_function" => Self::Python,
            b"overhead" => Self::Overhead,
            b"gpu_user_annotation" | b"Trace" | b"critical_path" => Self::Bookkeeping,
            b"cuda_sync" => Self::Sync,
            b"cuda_event"
            | b"cuda_profiler_range"
            | b"xpu_sync"
            | b"collective_comm"
            | b"xpu_scope_profiler"
            | b"hardware_counters"
            | b"mtia_counters" => Self::TimedOnly,
            _ if cat.ends_with(b"_runtime") || cat.ends_with(b"_driver") => Self::Api,
            _ => Self::Unknown,
        }
    }

    /// True when nothing in `args` is used.
    pub(super) fn ignores_args(self) -> bool {
        matches!(self, Self::Annotation | Self::Python | Self::Overhead | Self::Bookkeeping | Self::TimedOnly)
    }
}

/// Names that 2021 traces gave to annotations, in the category of operators.
pub(super) fn is_annotation_name(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 4] = [b"ProfilerStep#", b"Optimizer.", b"enumerate(DataLoader)", b"nccl:"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
