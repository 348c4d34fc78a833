//! What made a recording, and what to tell its user to record more.
//!
//! An importer says which recorder wrote its format; every text that asks for more data takes its words from here, so that nobody is told to
//! set an option of another program. To add a recorder, add a variant and its [`Advice`].

/// What made a recording, as far as it decides what could be recorded and how to record more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorder {
    /// PyTorch's profiler, or something that writes like it.
    #[default]
    Torch,
    /// Nsight Systems, which sees no operators but those that announce themselves as ranges.
    NsightSystems,
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
    /// What a user can do about missing operators, in the trust header.
    pub operators_hint: &'static str,
    /// What a user can do about missing device work, in the trust header.
    pub device_hint: &'static str,
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
    operators_hint: "add ProfilerActivity.CPU to the profiler's activities",
    device_hint: "add ProfilerActivity.CUDA to the profiler's activities",
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
    operators_hint: "Nsight Systems sees no operators: run PyTorch under `torch.autograd.profiler.emit_nvtx()`, or go by NVTX ranges",
    device_hint: "record with `nsys profile --trace=cuda,nvtx`",
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
    operators_hint: "no work names its HLO operation: go by ranges (`longpole ranges`)",
    device_hint: "nothing ran on a GPU, or CUPTI could not start: see the log of the program",
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
    operators_hint: "no node was run while the profile was recorded: run the model before `end_profiling()`",
    device_hint: "ONNX Runtime records it with a GPU provider, built with CUDA profiling; `nsys profile` records it with any build",
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
    operators_hint: "this Chrome trace names ranges, not operators: see `longpole ranges`",
    device_hint: "this Chrome trace holds host ranges only: `nsys profile` or torch.profiler records the GPU",
};

impl Recorder {
    /// What to tell its user.
    pub const fn advice(self) -> &'static Advice {
        match self {
            Self::Torch => &TORCH,
            Self::NsightSystems => &NSIGHT_SYSTEMS,
            Self::Xla => &XLA,
            Self::OnnxRuntime => &ONNX_RUNTIME,
            Self::Unknown => &UNKNOWN,
        }
    }
}
