//! What made a recording, and what to tell its user to record more.
//!
//! An importer says which recorder wrote its format; every text that asks for more data takes its words from here, so that nobody is told to
//! set an option of another program. To add a recorder, add a variant and its [`Advice`].

use crate::problems::{ProblemCode, Problems};

/// What made a recording, as far as it decides what could be recorded and how to record more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorder {
    /// PyTorch's profiler, or something that writes like it.
    #[default]
    Torch,
    /// Nsight Systems, which sees no operators but those that announce themselves as ranges.
    NsightSystems,
}

/// What to say where something was not recorded. Each is a clause without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// A table of device work is empty.
    pub no_device: &'static str,
    /// Columns of device times are empty.
    pub no_device_times: &'static str,
    /// A question about the device cannot be answered.
    pub device_unknown: &'static str,
    /// How to record the device.
    pub record_device: &'static str,
    /// The same, where it is not sure that there was one.
    pub record_device_if_used: &'static str,
    /// How to record operators.
    pub record_operators: &'static str,
    /// Where device work belongs cannot be answered.
    pub host_unknown: &'static str,
    /// Phases cannot be told apart.
    pub phases_unknown: &'static str,
    /// How to name phases.
    pub name_phases: &'static str,
    /// Columns of memory are empty.
    pub no_memory: &'static str,
    /// A column of shapes is empty.
    pub no_shapes: &'static str,
    /// Stacks are missing.
    pub no_stacks: &'static str,
    /// What a user can do about problems, where that is not what is said of their kind.
    pub hints: &'static [(ProblemCode, &'static str)],
}

const TORCH: Advice = Advice {
    no_device: "no device activity was recorded (add ProfilerActivity.CUDA)",
    no_device_times: "CUDA times: no device activity was recorded (add ProfilerActivity.CUDA)",
    device_unknown: "cannot be known: no device activity was recorded (ProfilerActivity.CUDA records it)",
    record_device: "record the device: profile with ProfilerActivity.CUDA and no counter or range profiling, then read the GPU busy share",
    record_device_if_used: "record the device, if one was used (ProfilerActivity.CUDA), then read the GPU busy share",
    record_operators: "record operators too (ProfilerActivity.CPU), then read who owns that kernel",
    host_unknown: "cannot be known: no operators and no ranges were recorded (ProfilerActivity.CPU records them)",
    phases_unknown: "cannot be known: no range is named like prefill or decode (record_function or NVTX ranges would tell)",
    name_phases: "wrap each phase in `with torch.profiler.record_function(\"decode_step\"):` (NVTX: `with torch.cuda.nvtx.range(\"decode_step\"):`), \
                  then compare GPU busy by range",
    no_memory: "memory: not recorded (profile_memory=True records it)",
    no_shapes: "shapes: not recorded (record_shapes=True records them)",
    no_stacks: "stacks: not recorded (with_stack=True records them)",
    // Hints of kinds are in its words.
    hints: &[],
};

const NSIGHT_SYSTEMS: Advice = Advice {
    no_device: "no device activity was recorded (nsys profile --trace=cuda,nvtx records it)",
    no_device_times: "CUDA times: no device activity was recorded (nsys profile --trace=cuda,nvtx records it)",
    device_unknown: "cannot be known: no device activity was recorded (nsys profile --trace=cuda,nvtx records it)",
    record_device: "record the device: `nsys profile --trace=cuda,nvtx --cuda-graph-trace=node`, then read the GPU busy share",
    record_device_if_used: "record the device, if one was used (nsys profile --trace=cuda,nvtx), then read the GPU busy share",
    record_operators: "let PyTorch announce its operators (torch.autograd.profiler.emit_nvtx), then read who owns that kernel",
    host_unknown: "cannot be known: no ranges were recorded (NVTX ranges, or emit_nvtx of PyTorch, would tell)",
    phases_unknown: "cannot be known: no range is named like prefill or decode (NVTX ranges would tell)",
    name_phases: "wrap each phase in an NVTX range (`with torch.cuda.nvtx.range(\"decode_step\"):`, in C++ `nvtxRangePushA(\"decode_step\"); ... \
                  nvtxRangePop();`) and record with --trace=cuda,nvtx, then compare GPU busy by range",
    no_memory: "memory: Nsight Systems does not see PyTorch's allocator (torch.profiler with profile_memory=True records it)",
    no_shapes: "shapes: not recorded (emit_nvtx(record_shapes=True) of PyTorch writes them)",
    no_stacks: "stacks: Nsight Systems records none of Python functions that can be used here (torch.profiler with with_stack=True records them)",
    hints: &[
        (
            ProblemCode::NoOperators,
            "Nsight Systems sees no operators: run PyTorch under `torch.autograd.profiler.emit_nvtx()`, or go by NVTX ranges",
        ),
        (ProblemCode::NoDeviceActivity, "record with `nsys profile --trace=cuda,nvtx`"),
        (ProblemCode::OrphanActivity, "record calls too (--trace=cuda); see whether nsys said that it dropped events"),
        (ProblemCode::LaunchedBeforeWindow, "begin to record before the work, or between two steps (--capture-range)"),
        (ProblemCode::LaunchWithoutActivity, "synchronise before the recording ends; see whether nsys said that it dropped events"),
    ],
};

impl Recorder {
    /// Says beside problems already counted what its user can do.
    pub fn note_hints(self, problems: &mut Problems) {
        for &(code, hint) in self.advice().hints {
            problems.note_hint(code, hint);
        }
    }

    /// What to tell its user.
    pub const fn advice(self) -> &'static Advice {
        match self {
            Self::Torch => &TORCH,
            Self::NsightSystems => &NSIGHT_SYSTEMS,
        }
    }
}
