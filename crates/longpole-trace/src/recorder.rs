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
    /// longpole's own recorder, which sees what Nsight Systems sees.
    Longpole,
    /// XLA's profiler, for JAX and TensorFlow.
    Xla,
    /// ONNX Runtime's profiler.
    OnnxRuntime,
    /// Triton's Proton, which adds up by kernel and scope.
    Proton,
    /// TensorRT's `trtexec`, which adds up by layer.
    TensorRt,
    /// A program of which nothing is known but that it writes Chrome traces.
    Unknown,
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

/// What is said of events that are no JSON, whoever wrote them.
const MALFORMED: (ProblemCode, &str) = (
    ProblemCode::MalformedEvent,
    "an unescaped quote or control character in a name is the usual cause: report it to whoever wrote the file",
);

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
            "Nsight Systems sees no operators: go by NVTX ranges; PyTorch announces its operators under `torch.autograd.profiler.emit_nvtx()`",
        ),
        (ProblemCode::NoDeviceActivity, "record with `nsys profile --trace=cuda,nvtx`"),
        (ProblemCode::OrphanActivity, "record calls too (--trace=cuda); see whether nsys said that it dropped events"),
        (ProblemCode::LaunchedBeforeWindow, "begin to record before the work, or between two steps (--capture-range)"),
        (ProblemCode::LaunchWithoutActivity, "synchronise before the recording ends; see whether nsys said that it dropped events"),
        MALFORMED,
    ],
};

const LONGPOLE: Advice = Advice {
    no_device: "no device activity was recorded (the program did no work on the GPU while it was recorded)",
    no_device_times: "CUDA times: no device activity was recorded (the program did no work on the GPU while it was recorded)",
    device_unknown: "cannot be known: no device activity was recorded (the program did no work on the GPU while it was recorded)",
    record_device: "record while the program uses the GPU (longpole record, without --range, --delay and --duration), then read the GPU busy share",
    record_device_if_used: "if a GPU was used, record while it is (longpole record, without --range, --delay and --duration), then read the GPU busy share",
    record_operators: "let PyTorch announce its operators (torch.autograd.profiler.emit_nvtx), then read who owns that kernel",
    host_unknown: "cannot be known: no ranges were recorded (NVTX ranges, or emit_nvtx of PyTorch, would tell)",
    phases_unknown: "cannot be known: no range is named like prefill or decode (NVTX ranges would tell)",
    name_phases: "wrap each phase in an NVTX range (`with torch.cuda.nvtx.range(\"decode_step\"):`, in C++ `nvtxRangePushA(\"decode_step\"); ... \
                  nvtxRangePop();`), then compare GPU busy by range",
    no_memory: "memory: the recorder does not see PyTorch's allocator (torch.profiler with profile_memory=True records it)",
    no_shapes: "shapes: not recorded (emit_nvtx(record_shapes=True) of PyTorch writes them)",
    no_stacks: "stacks: the recorder takes none (torch.profiler with with_stack=True records them)",
    hints: &[
        (
            ProblemCode::NoOperators,
            "the recorder sees no operators: go by NVTX ranges; PyTorch announces its operators under `torch.autograd.profiler.emit_nvtx()`",
        ),
        (ProblemCode::NoDeviceActivity, "see that the program uses the GPU while it is recorded"),
        (ProblemCode::LaunchedBeforeWindow, "begin to record before the work, or between two steps (--range)"),
        (ProblemCode::LaunchWithoutActivity, "let the program end by itself; see whether records were dropped"),
        (ProblemCode::OrphanActivity, "see whether records were dropped; `--api all` records every call"),
        (ProblemCode::MissingName, "the parts of the recording that held them were lost: record again"),
        MALFORMED,
    ],
};

const XLA: Advice = Advice {
    no_device: "no device activity was recorded (XLA records it where CUPTI can start: see the log of the program)",
    no_device_times: "CUDA times: no device activity was recorded (XLA records it where CUPTI can start)",
    device_unknown: "cannot be known: no device activity was recorded (XLA records it where CUPTI can start: see the log of the program)",
    record_device: "record the device: let no other profiler use CUPTI, look for CUPTI in the log of the program, then read the GPU busy share",
    record_device_if_used: "record the device, if one was used (look for CUPTI in the log of the program), then read the GPU busy share",
    record_operators: "see which ranges launch that kernel (longpole ranges): no device work names its HLO operation",
    host_unknown: "cannot be known: no host events were recorded (ProfileOptions.host_tracer_level=2 records them)",
    phases_unknown: "cannot be known: no range is named like prefill or decode (jax.profiler.TraceAnnotation would tell)",
    name_phases: "wrap each phase in `with jax.profiler.TraceAnnotation(\"decode_step\"):`, then compare GPU busy by range",
    no_memory: "memory: a trace of XLA holds no allocations (jax.profiler.save_device_memory_profile writes them)",
    no_shapes: "shapes: a trace of XLA holds none",
    no_stacks: "stacks: not recorded (ProfileOptions.python_tracer_level=1 records them)",
    hints: &[
        (ProblemCode::NoOperators, "no work names its HLO operation: go by ranges (`longpole ranges`)"),
        (ProblemCode::NoDeviceActivity, "nothing ran on a GPU, or CUPTI could not start: see the log of the program"),
        (
            ProblemCode::OrphanActivity,
            "record the host too (ProfileOptions.host_tracer_level=2); XLA keeps a limited number of events: record less",
        ),
        (ProblemCode::LaunchedBeforeWindow, "call jax.block_until_ready before jax.profiler.start_trace"),
        (
            ProblemCode::LaunchWithoutActivity,
            "call jax.block_until_ready before jax.profiler.stop_trace; see the log of the program for dropped events",
        ),
        MALFORMED,
    ],
};

const ONNX_RUNTIME: Advice = Advice {
    no_device: "no device activity was recorded (ONNX Runtime records it with a GPU provider, built with CUDA profiling)",
    no_device_times: "CUDA times: no device activity was recorded (ONNX Runtime records it with a GPU provider, built with CUDA profiling)",
    device_unknown: "cannot be known: no device activity was recorded (a build of ONNX Runtime with CUDA profiling, or nsys profile, records it)",
    record_device: "record the device: `nsys profile --trace=cuda,nvtx`, or a build of ONNX Runtime with CUDA profiling, then read the GPU busy share",
    record_device_if_used: "if a GPU provider was used, record the device (`nsys profile --trace=cuda,nvtx`), then read the GPU busy share",
    record_operators: "profile runs of the model: set SessionOptions.enable_profiling before the session is made",
    host_unknown: "cannot be known: no node was run while the profile was recorded",
    phases_unknown: "cannot be known: ONNX Runtime names runs of the model, not phases (a session a phase would tell)",
    name_phases: "give each phase a session of its own, then compare their profiles",
    no_memory: "memory: a profile of ONNX Runtime holds no allocations",
    no_shapes: "shapes: not recorded (newer versions of ONNX Runtime record them)",
    no_stacks: "stacks: a profile of ONNX Runtime holds none",
    hints: &[
        (ProblemCode::NoOperators, "no node was run while the profile was recorded: run the model before `end_profiling()`"),
        (
            ProblemCode::NoDeviceActivity,
            "ONNX Runtime records it with a GPU provider, built with CUDA profiling; `nsys profile` records it with any build",
        ),
        (ProblemCode::OrphanActivity, "ONNX Runtime ties work to nodes by order; `nsys profile` records the calls that launched it"),
        (ProblemCode::LaunchedBeforeWindow, "profile from when the session is made (SessionOptions.enable_profiling)"),
        (ProblemCode::LaunchWithoutActivity, "read the outputs of the last run before `end_profiling()`"),
        MALFORMED,
    ],
};

const UNKNOWN: Advice = Advice {
    no_device: "no device activity was recorded (this Chrome trace holds host ranges only)",
    no_device_times: "CUDA times: no device activity was recorded (this Chrome trace holds host ranges only)",
    device_unknown: "cannot be known: no device activity was recorded (nsys profile or torch.profiler records it)",
    record_device: "record the device with `nsys profile --trace=cuda,nvtx` or torch.profiler, then read the GPU busy share",
    record_device_if_used: "if a GPU was used, record it with `nsys profile --trace=cuda,nvtx` or torch.profiler, then read the GPU busy share",
    record_operators: "see which ranges launch that kernel (longpole ranges): this Chrome trace names no operators",
    host_unknown: "cannot be known: the trace holds no operators and no ranges",
    phases_unknown: "cannot be known: no range is named like prefill or decode",
    name_phases: "write a range around each phase, then compare them (longpole ranges)",
    no_memory: "memory: this Chrome trace holds no allocations",
    no_shapes: "shapes: this Chrome trace holds none",
    no_stacks: "stacks: this Chrome trace holds none",
    hints: &[
        (ProblemCode::NoOperators, "this Chrome trace names ranges, not operators: see `longpole ranges`"),
        (ProblemCode::NoDeviceActivity, "this Chrome trace holds host ranges only: `nsys profile` or torch.profiler records the GPU"),
        (
            ProblemCode::OrphanActivity,
            "let the program that writes the trace record the calls that launch work, with the same correlation number",
        ),
        (ProblemCode::LaunchedBeforeWindow, "begin to record before the work"),
        (ProblemCode::LaunchWithoutActivity, "wait for the device before the recording ends"),
        MALFORMED,
    ],
};

const SUMS: Advice = Advice {
    no_device: "no device work is in the profile",
    no_device_times: "CUDA times: no device work is in the profile",
    device_unknown: "cannot be known: the profile holds totals and no timeline (nsys profile or torch.profiler records one)",
    record_device: "record a timeline (`nsys profile --trace=cuda,nvtx` or torch.profiler), then read the GPU busy share",
    record_device_if_used: "record a timeline (`nsys profile --trace=cuda,nvtx` or torch.profiler), then read the GPU busy share",
    record_operators: "record a timeline (`nsys profile --trace=cuda,nvtx` or torch.profiler), then read who owns that kernel",
    host_unknown: "cannot be known: the profile holds totals and no timeline",
    phases_unknown: "cannot be known: no scope is named like prefill or decode",
    name_phases: "name each phase by a scope, then compare them (longpole ranges)",
    no_memory: "memory: a profile of totals holds no allocations",
    no_shapes: "shapes: a profile of totals holds none",
    no_stacks: "stacks: a profile of totals holds none",
    // Totals have no launches, but beside a timeline the words of either may be asked for.
    hints: &[
        (ProblemCode::NoOperators, "record a timeline (`nsys profile --trace=cuda,nvtx` or torch.profiler)"),
        (ProblemCode::NoDeviceActivity, "record a timeline (`nsys profile --trace=cuda,nvtx` or torch.profiler)"),
        (ProblemCode::OrphanActivity, "record a timeline (`nsys profile --trace=cuda,nvtx` or torch.profiler)"),
        (ProblemCode::LaunchedBeforeWindow, "begin to record before the work"),
        (ProblemCode::LaunchWithoutActivity, "wait for the device before the recording ends"),
        MALFORMED,
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
            Self::Longpole => &LONGPOLE,
            Self::Xla => &XLA,
            Self::OnnxRuntime => &ONNX_RUNTIME,
            Self::Proton | Self::TensorRt => &SUMS,
            Self::Unknown => &UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_set_an_option_of_pytorchs_profiler_who_did_not_use_it() {
        const TORCHS: [&str; 6] = ["ProfilerActivity", "export_chrome_trace", "torch versions", "schedule", "CUPTI did", "`prof."];
        let others = [
            Recorder::NsightSystems,
            Recorder::Longpole,
            Recorder::Xla,
            Recorder::OnnxRuntime,
            Recorder::Proton,
            Recorder::TensorRt,
            Recorder::Unknown,
        ];
        for recorder in others {
            let advice = recorder.advice();
            let texts = [
                advice.no_device,
                advice.no_device_times,
                advice.device_unknown,
                advice.record_device,
                advice.record_device_if_used,
                advice.record_operators,
                advice.host_unknown,
                advice.phases_unknown,
                advice.name_phases,
                advice.no_stacks,
            ];
            let hints = ProblemCode::ALL.iter().map(|code| {
                let mut problems = Problems::default();
                problems.add(*code, None, || None);
                recorder.note_hints(&mut problems);
                problems.get(*code).and_then(|problem| problem.hint).unwrap_or(code.describe().3)
            });
            for text in texts.into_iter().chain(hints) {
                for word in TORCHS {
                    assert!(!text.contains(word), "{recorder:?}: {text}");
                }
            }
        }
    }
}
