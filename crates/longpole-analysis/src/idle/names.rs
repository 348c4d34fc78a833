//! What names mean to the host's side of a gap.

use longpole_trace::{StrId, Trace};

use crate::smells::{compiles, is_compiler_frame, loads, manages_memory};

/// What a call, operator or Python function does, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A call that waits for the device.
    Waits,
    /// A copy that returns when it is queued, unless its memory is pageable.
    AsyncCopy,
    /// Gets or returns memory.
    Allocates,
    /// Launches a device graph.
    LaunchesGraph,
    /// Compiles, tunes or loads code, with all that happens inside.
    Compiles,
    /// Nothing special.
    Other,
}

/// Work by name, found out on first use.
#[derive(Debug)]
pub(super) struct WorkOfName {
    known: Vec<Option<Work>>,
    of: fn(&str) -> Work,
}

impl WorkOfName {
    /// Of API calls of either vendor, runtime and driver.
    pub(super) fn of_calls(trace: &Trace) -> Self {
        Self::new(trace, of_call)
    }

    /// Of operators and ranges.
    pub(super) fn of_ops(trace: &Trace) -> Self {
        Self::new(trace, |name| if compiles(name) { Work::Compiles } else { by_any_name(name) })
    }

    /// Of Python functions.
    pub(super) fn of_frames(trace: &Trace) -> Self {
        Self::new(trace, |name| if is_compiler_frame(name) || compiles(name) { Work::Compiles } else { by_any_name(name) })
    }

    fn new(trace: &Trace, of: fn(&str) -> Work) -> Self {
        Self { known: vec![None; trace.strings.len()], of }
    }

    pub(super) fn get(&mut self, trace: &Trace, name: StrId) -> Work {
        *self.known[name.index()].get_or_insert_with(|| (self.of)(trace.strings.get(name)))
    }
}

fn of_call(name: &str) -> Work {
    if name.contains("Synchronize") {
        Work::Waits
    } else if name.contains("Memcpy") {
        if name.contains("Async") { Work::AsyncCopy } else { Work::Waits }
    } else if manages_memory(name) {
        Work::Allocates
    } else if name.contains("GraphLaunch") || name.contains("GraphUpload") {
        Work::LaunchesGraph
    } else if loads(name) || name.contains("GraphInstantiate") {
        Work::Compiles
    } else {
        Work::Other
    }
}

/// torch's name for returning memory to the driver, as a Python function.
fn by_any_name(name: &str) -> Work {
    if name.contains("empty_cache") || name.contains("emptyCache") { Work::Allocates } else { Work::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_vendors() {
        let waits = ["cudaStreamSynchronize", "hipEventSynchronize", "cuCtxSynchronize", "cudaMemcpy", "hipMemcpyWithStream"];
        assert!(waits.iter().all(|name| of_call(name) == Work::Waits));
        let work = [
            ("cudaMemcpyAsync", Work::AsyncCopy),
            ("cuMemcpyDtoHAsync_v2", Work::AsyncCopy),
            ("cudaMalloc", Work::Allocates),
            ("hipFree", Work::Allocates),
            ("cudaGraphLaunch", Work::LaunchesGraph),
            ("cudaGraphInstantiateWithFlags", Work::Compiles),
            ("cuLibraryLoadData", Work::Compiles),
            ("cudaLaunchKernel", Work::Other),
            ("cudaEventQuery", Work::Other),
        ];
        for (name, want) in work {
            assert_eq!(of_call(name), want, "{name}");
        }
    }

    #[test]
    fn compilers_by_the_names_of_ranges_and_frames() {
        let trace = Trace::default();
        let ops = WorkOfName::of_ops(&trace).of;
        assert_eq!((ops("compile_inner (dynamo_timed)"), ops("aten::mm")), (Work::Compiles, Work::Other));
        let frames = WorkOfName::of_frames(&trace).of;
        assert_eq!(frames("torch/_inductor/compile_fx.py(12): compile_fx"), Work::Compiles);
        assert_eq!(frames("torch/cuda/memory.py(160): empty_cache"), Work::Allocates);
        assert_eq!(frames("model.py(3): forward"), Work::Other);
    }
}
