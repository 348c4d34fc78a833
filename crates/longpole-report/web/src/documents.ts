/** Made from docs/schema by scripts/documents.mjs: do not edit. */

export type Trust = {
  grade: "good" | "noted" | "partial";
  notes: {
    code: string;
    severity: "info" | "notice" | "data_loss" | "error";
    count: number;
    message: string;
    hint: string;
    example: string | null;
    first_offset_bytes: number | null;
    time_ns: number | null;
  }[];
};

export type Scope = {
  range: string | null;
  step: number | null;
  start_ns: number | null;
  end_ns: number | null;
  device: number | null;
  rank: number | null;
};

export type Peaks = {
  name: string;
  source: string;
  memory_bytes_per_s: number;
  cache_bytes: number | null;
  flops_per_s: { [key: string]: number; };
} | null;

export type Source = {
  path: string;
  format: "ncu-rep" | "ncu-repz" | "ncu-csv";
  bytes: number;
  events: number;
  kernels: number;
  ranges: number;
  graphs: number;
  command_lists: number;
  ncu_version: string | null;
  cuda_version: string | null;
  driver_version: string | null;
  devices: {
    id: number;
    name: string;
    sm_count: number | null;
    memory_bytes: number | null;
    compute_capability: string | null;
  }[];
  processes: string[];
  settings: { option: string; value: string; }[];
  command_line: string | null;
};

export type Names = {
  name: string | null;
  short_name: string | null;
  family: "gemm/gemv" | "attention" | "norm" | "elementwise" | "copy/cast" | "gather/scatter" | "reduction" | "softmax/sampling" | "communication" | "memcpy" | "memset" | "other" | null;
  launches: number;
  without_duration: number;
  duration_ns: number | null;
  share_fraction: number | null;
  min_ns: number | null;
  median_ns: number | null;
  max_ns: number | null;
  dram_pct: number | null;
  sm_pct: number | null;
  verdict: "too small" | "memory bound" | "compute bound" | "latency bound" | "balanced" | null;
}[];

/** longpole triage --json */
export interface Triage {
  schema: "longpole.triage/1";
  source: { path: string; format: string; bytes: number; events: number; };
  trust: Trust;
  scope: Scope;
  hardware: {
    devices: {
      id: number;
      rank: number;
      name: string | null;
      sm_count: number | null;
      memory_bytes: number | null;
      peak_dram_bytes_per_s: number | null;
      active: boolean;
    }[];
    driver: string | null;
    cuda: string | null;
  };
  totals: {
    wall_ns: number | null;
    windows: number | null;
    unrecorded_ns: number | null;
    gpu_busy_ns: number | null;
    gpu_idle_ns: number | null;
    gpu_outside_scope_ns: number | null;
    gpu_busy_fraction: number | null;
    kernel_busy_ns: number | null;
    copy_busy_ns: number | null;
    comm_busy_ns: number | null;
    exposed_copy_ns: number | null;
    exposed_comm_ns: number | null;
    kernels: number | null;
    memcpys: number | null;
    memsets: number | null;
    launches: number | null;
    host_ops: number | null;
    devices: {
      id: number | null;
      rank: number | null;
      gpu_busy_ns: number;
      gpu_span_ns: number;
      gpu_idle_ns: number;
      kernel_busy_ns: number;
      copy_busy_ns: number;
      comm_busy_ns: number;
      exposed_copy_ns: number;
      exposed_comm_ns: number;
      activities: number;
    }[];
    cuda_ns?: number | null;
    device_sums?: { device: number | null; rank: number | null; cuda_ns: number | null; calls: number | null; }[];
  };
  ops: {
    name: string;
    kind: "operator" | "api_call" | "no_operator";
    shapes: string | null;
    stack: string[] | null;
    calls: number;
    self_cpu_ns: number | null;
    cpu_ns: number | null;
    self_cuda_ns: number | null;
    cuda_ns: number | null;
    self_cpu_mem_bytes: number | null;
    cpu_mem_bytes: number | null;
    self_cuda_mem_bytes: number | null;
    cuda_mem_bytes: number | null;
  }[];
  families: {
    family: "gemm/gemv" | "attention" | "norm" | "elementwise" | "copy/cast" | "gather/scatter" | "reduction" | "softmax/sampling" | "communication" | "memcpy" | "memset" | "other";
    calls: number | null;
    self_cuda_ns: number | null;
    share_fraction: number | null;
  }[];
  kernels: {
    name: string;
    short_name: string;
    kind: "kernel" | "memcpy" | "memset" | "other" | "layer";
    family: "gemm/gemv" | "attention" | "norm" | "elementwise" | "copy/cast" | "gather/scatter" | "reduction" | "softmax/sampling" | "communication" | "memcpy" | "memset" | "other";
    calls: number | null;
    cuda_ns: number | null;
    min_ns: number | null;
    median_ns: number | null;
    max_ns: number | null;
    op: string | null;
    ops: { name: string; calls: number; cuda_ns: number; }[];
    average_ns?: number | null;
    cycles?: number | null;
    bytes?: number | null;
    flops?: number | null;
    bytes_per_s?: number | null;
    flops_per_s?: number | null;
    floor_fraction?: number | null;
    scopes?: { name: string; calls: number | null; cuda_ns: number | null; }[];
  }[];
  ranges: {
    name: string;
    parents: string[];
    depth: number;
    calls: number | null;
    cpu_ns: number | null;
    gpu_span_ns: number | null;
    gpu_busy_ns: number | null;
    gpu_idle_ns: number | null;
    kernels: number | null;
    cuda_ns?: number | null;
    self_cuda_ns?: number | null;
    cycles?: number | null;
    bytes?: number | null;
    flops?: number | null;
    bytes_per_s?: number | null;
    flops_per_s?: number | null;
    floor_fraction?: number | null;
  }[];
  smells: {
    code: string;
    subject: string;
    summary: string;
    share_fraction: number | null;
    evidence: { [key: string]: number | string | string[] | null; };
    ceiling: {
      win_ns: number | null;
      win_fraction: number | null;
      is_calibrated: boolean;
      kind: "work_free" | "at_memory_floor" | "at_compute_floor" | "fused" | "idle_gone" | "graph_replay" | "host_time_gone" | null;
      formula: string;
    };
    next: string;
  }[];
  questions: {
    code: "kernels_packed" | "host_and_gpu" | "prefill_and_decode" | "copies_critical";
    question: string;
    verdict: string;
    answer: string;
    evidence: { [key: string]: number | string | string[] | null; };
  }[];
  host_clock: {
    note: string;
    calibration: {
      step: string;
      steps: number;
      profiled_step_ns: number;
      unprofiled_step_ns: number;
      inflation_ratio: number;
      busy_per_step_ns: number | null;
      busy_fraction: number | null;
    } | null;
  } | null;
  report: {
    workload: string;
    hardware: string;
    top_cuda_time: string;
    top_host_cost: string;
    next_experiment: string;
    next_experiment_code: string;
  };
  compare?: { schema: "longpole.diff/1"; };
}

/** longpole steps --json */
export interface Steps {
  schema: "longpole.steps/1";
  source: { path: string; format: string; bytes: number; events: number; };
  trust: Trust;
  scope: Scope;
  recorded: {
    program: string;
    status: number;
    range: string | null;
    windows: number | null;
    delay_ns: number | null;
    window_ns: number | null;
    path: string | null;
  } | null;
  last_half: boolean;
  peaks: Peaks;
  no_peaks: string | null;
  groups: {
    name: string;
    found_by: "marker" | "graph_replay" | "kernel_sequence";
    device: number | null;
    rank: number | null;
    count: number;
    layers: number;
    layer_kinds: { kernels: number; copies_and_fills: number; count: number; }[];
    layer_order: number[];
    kernels_per_step: number;
    activities_per_step: number;
    busy_ns: number;
    span_ns: number;
    period_ns: number | null;
    gap_inside_ns: number;
    gap_between_ns: number | null;
    total_busy_ns: number;
    half_steps: number;
    first_half_busy_ns: number | null;
    second_half_busy_ns: number | null;
    rows: {
      part: "prologue" | "layer" | "epilogue";
      layer_kind: number | null;
      place: number | null;
      role: string;
      role_from: "module" | "operator" | "inferred" | "borrowed" | "kernel";
      kernel: string;
      kernel_name: string;
      kind: "kernel" | "memcpy" | "memset" | "other";
      calls: number;
      calls_per_step: number;
      ns_per_step: number;
      min_ns: number;
      max_ns: number;
      total_ns: number;
      share_fraction: number;
      floor_ns: number | null;
      ceiling_ns: number | null;
    }[];
    best_ceiling: {
      kind: "work_free" | "at_memory_floor" | "at_compute_floor" | "fused" | "idle_gone" | "graph_replay";
      subject: "role" | "chain" | "step" | "idle";
      part: "prologue" | "layer" | "epilogue" | null;
      layer_kind: number | null;
      roles: string[];
      cause: string | null;
      ns_per_step: number | null;
      total_ns: number;
      of_span_fraction: number | null;
      basis: string;
    } | null;
    ceilings: {
      kind: "work_free" | "at_memory_floor" | "at_compute_floor" | "fused" | "idle_gone" | "graph_replay";
      subject: "role" | "chain" | "step" | "idle";
      part: "prologue" | "layer" | "epilogue" | null;
      layer_kind: number | null;
      roles: string[];
      cause: string | null;
      ns_per_step: number | null;
      total_ns: number;
      of_span_fraction: number | null;
      basis: string;
    }[];
    strip: { kind: number; busy_ns: number; outlier: boolean; }[];
    steps: { number: number; start_ns: number; span_ns: number; busy_ns: number; period_ns: number | null; }[];
    left_out: {
      number: number;
      start_ns: number;
      span_ns: number;
      busy_ns: number;
      period_ns: number | null;
      why: "slow" | "other_kernels" | "cut_off" | "first_half";
    }[];
    slow_steps: {
      number: number;
      start_ns: number;
      excess_ns: number;
      culprit: "row" | "idle_inside";
      culprit_role: string | null;
      culprit_kernel: string | null;
      culprit_ns: number;
    }[];
    notes: {
      code: "warm_up_left_out" | "drift" | "without_launch" | "repeats_are_steps" | "cut_off" | "unmatched" | "marker_holds_several_steps" | "roles_borrowed" | "numbered_apart" | "no_steps";
      text: string;
    }[];
  }[];
  activities_outside: number;
  outside_ns: number;
  notes: {
    code: "warm_up_left_out" | "drift" | "without_launch" | "repeats_are_steps" | "cut_off" | "unmatched" | "marker_holds_several_steps" | "roles_borrowed" | "numbered_apart" | "no_steps";
    text: string;
  }[];
}

/** longpole idle --json */
export interface Idle {
  schema: "longpole.idle/1";
  source: { path: string; format: string; bytes: number; events: number; };
  trust: Trust;
  scope: Scope;
  idle_ns: number | null;
  span_ns: number | null;
  causes: {
    cause: "blocked_in_sync" | "dispatch" | "python" | "outside_operators" | "allocation" | "graph_launch" | "compile_or_load" | "profiler" | "launch_latency" | "event_wait" | "dependency" | "graph_internal" | "copy_engine" | "nothing_recorded";
    is_device_side: boolean;
    idle_ns: number;
    intervals: number;
    largest_ns: number;
    largest_at_ns: number;
    largest_on: { device: number | null; rank: number | null; };
  }[];
  by_range: {
    name: string;
    parents: string[];
    calls: number;
    span_ns: number;
    idle_ns: number;
    empty_queue_ns: number;
    causes: {
      cause: "blocked_in_sync" | "dispatch" | "python" | "outside_operators" | "allocation" | "graph_launch" | "compile_or_load" | "profiler" | "launch_latency" | "event_wait" | "dependency" | "graph_internal" | "copy_engine" | "nothing_recorded";
      idle_ns: number;
    }[];
  }[];
  by_frame: {
    kind: "operator" | "call" | "python" | "os_call" | "range" | "overhead" | "nothing";
    name: string | null;
    inside: string | null;
    cause: "blocked_in_sync" | "dispatch" | "python" | "outside_operators" | "allocation" | "graph_launch" | "compile_or_load" | "profiler" | "launch_latency" | "event_wait" | "dependency" | "graph_internal" | "copy_engine" | "nothing_recorded";
    idle_ns: number;
    intervals: number;
    largest_ns: number;
  }[];
  host_samples: { samples: number; rows: { name: string; samples: number; share_fraction: number; }[]; } | null;
  queue: {
    window_ns: number;
    empty_ns: number;
    empty_fraction: number | null;
    mean_depth: number | null;
    max_depth: number;
    without_launch: number;
  };
  devices: {
    device: number | null;
    rank: number | null;
    span_ns: number;
    idle_ns: number;
    gaps: number;
    causes: {
      cause: "blocked_in_sync" | "dispatch" | "python" | "outside_operators" | "allocation" | "graph_launch" | "compile_or_load" | "profiler" | "launch_latency" | "event_wait" | "dependency" | "graph_internal" | "copy_engine" | "nothing_recorded";
      is_device_side: boolean;
      idle_ns: number;
      intervals: number;
      largest_ns: number;
      largest_at_ns: number;
      largest_on: { device: number | null; rank: number | null; };
    }[];
    queue: {
      window_ns: number;
      empty_ns: number;
      empty_fraction: number | null;
      mean_depth: number | null;
      max_depth: number;
      without_launch: number;
    };
    queue_over_time: { start_ns: number; end_ns: number; mean_depth: number; max_depth: number; empty_ns: number; }[];
  }[];
  unsplit_gaps: number;
}

/** longpole roofline --json */
export interface Roofline {
  schema: "longpole.roofline/1";
  source: { path: string; format: string; bytes: number; events: number; };
  trust: Trust;
  scope: Scope;
  peaks: Peaks;
  no_peaks: string | null;
  busy_ns: number;
  covered_ns: number;
  covered_fraction: number | null;
  floor_ns: number | null;
  above_floor_ns: number | null;
  unknown: { reason: string; rows: number; device_ns: number; }[];
  rows: {
    name: string;
    shapes: string | null;
    types: string | null;
    kernel: string | null;
    family: string | null;
    calls: number | null;
    activities: number;
    device_ns: number;
    share_fraction: number | null;
    dtype: string | null;
    flops_per_call: number | null;
    flops_per_call_most: number | null;
    bytes_per_call: number | null;
    bytes_per_call_most: number | null;
    floor_per_call_ns: number | null;
    compute_floor_per_call_ns: number | null;
    memory_floor_per_call_ns: number | null;
    roof: "compute" | "memory" | null;
    peak: string | null;
    floor_ns: number | null;
    above_floor_ns: number | null;
    time_over_floor: number | null;
    flops_per_s: number | null;
    bytes_per_s: number | null;
    verdict: "compute_bound" | "memory_bound" | "launch_bound" | null;
    faster_than: "cache" | "memory" | "compute" | null;
    unknown: string | null;
  }[];
}

/** longpole memory --json */
export interface Memory {
  schema: "longpole.memory/1";
  source: { path: string; format: string; bytes: number; events: number; };
  trust: Trust;
  scope: Scope;
  recorded: boolean;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  memory: {
    name: string;
    place: "host" | "device";
    calls: number;
    allocations: number;
    allocated_bytes: number;
    freed_bytes: number;
    net_bytes: number;
    peak_bytes: number;
  }[];
}

/** longpole diff --json */
export interface Diff {
  schema: "longpole.diff/1";
  source: { path: string; format: string; bytes: number; events: number; };
  trust: Trust;
  scope: Scope;
  before: {
    source: { path: string; format: string; bytes: number; events: number; };
    trust: {
      grade: "good" | "noted" | "partial";
      notes: {
        code: string;
        severity: "info" | "notice" | "data_loss" | "error";
        count: number;
        message: string;
        hint: string;
        example: string | null;
        first_offset_bytes: number | null;
        time_ns: number | null;
      }[];
    };
  };
  settings: { what: string; before: string; after: string; means: string; }[];
  pairs: {
    before: string;
    after: string;
    matched_by: "name" | "layers" | "kernels";
    steps_before: number;
    steps_after: number;
    kernels_per_step_before: number;
    kernels_per_step_after: number;
    host_wait_fraction_before: number;
    host_wait_fraction_after: number;
    figure: "period" | "span";
    verdict: "FASTER" | "SLOWER" | "SAME" | "AMBIGUOUS";
  }[];
  only_before: string[];
  only_after: string[];
  rows: {
    pair: number | null;
    kind: "step" | "idle_cause" | "role" | "family" | "kernel" | "operator" | "range" | "total";
    key: string;
    label: string;
    per: "step" | "instance" | "trace";
    presence: "both" | "new" | "gone";
    before_ns: number | null;
    after_ns: number | null;
    delta_ns: number;
    calls_before: number | null;
    calls_after: number | null;
    ratio: number | null;
    ratio_low: number | null;
    ratio_high: number | null;
    smallest_effect_fraction: number | null;
    smallest_decrease_fraction: number | null;
    verdict: "FASTER" | "SLOWER" | "SAME" | "AMBIGUOUS" | null;
  }[];
  suspects: {
    code: string;
    before: { share_fraction: number | null; ceiling_ns: number | null; ceiling_per_step_ns: number | null; } | null;
    after: { share_fraction: number | null; ceiling_ns: number | null; ceiling_per_step_ns: number | null; } | null;
    judged_before: boolean;
    judged_after: boolean;
  }[];
  suspect_ceilings: "equal_traces" | "step" | "whole_traces" | "other_steps";
}

/** longpole ncu --json */
export interface Ncu {
  schema: "longpole.ncu/1";
  source: Source;
  trust: Trust;
  kernels: {
    id: number;
    kind: "kernel" | "range" | "graph" | "command_list";
    name: string;
    short_name: string;
    function: string | null;
    family: "gemm/gemv" | "attention" | "norm" | "elementwise" | "copy/cast" | "gather/scatter" | "reduction" | "softmax/sampling" | "communication" | "memcpy" | "memset" | "other" | null;
    process: string | null;
    nvtx: string[];
    grid: number[] | null;
    block: number[] | null;
    cluster_size: number | null;
    registers_per_thread: number | null;
    shared_bytes_per_block: number | null;
    shared_static_bytes: number | null;
    shared_dynamic_bytes: number | null;
    shared_driver_bytes: number | null;
    waves_per_sm: number | null;
    sm_count: number | null;
    duration_ns: number | null;
    dram_read_bytes: number | null;
    dram_write_bytes: number | null;
    dram_bytes_per_s: number | null;
    dram_peak_bytes_per_s: number | null;
    dram_pct: number | null;
    memory_pct: number | null;
    sm_pct: number | null;
    l1_pct: number | null;
    l2_pct: number | null;
    l1_hit_pct: number | null;
    l2_hit_pct: number | null;
    ipc: number | null;
    issue_active_fraction: number | null;
    active_warps: number | null;
    eligible_warps: number | null;
    busiest_pipe: string | null;
    busiest_pipe_pct: number | null;
    tensor_pct: number | null;
    sm_clock_hz: number | null;
    dram_clock_hz: number | null;
    theoretical_occupancy_pct: number | null;
    achieved_occupancy_pct: number | null;
    occupancy_limiters: string[];
    occupancy_limits: { resource: string; blocks_per_sm: number; }[];
    verdict: "too small" | "memory bound" | "compute bound" | "latency bound" | "balanced" | null;
    verdict_because: string | null;
    warp_cycles_per_issue: number | null;
    stalls: { reason: string; cycles_per_issue: number | null; share_fraction: number | null; meaning: string; }[];
    rules: {
      name: string;
      title: string;
      section: string;
      text: string;
      kind: "" | "INF" | "WRN" | "ERR" | "OPT";
      scope: "global" | "local" | null;
      speedup_pct: number | null;
      related: boolean;
    }[];
    symptoms: { code: string; text: string; }[];
    missing: { what: string; section: string; }[];
    samples: number | null;
    hot: {
      address: number;
      sass: string | null;
      mnemonic: string | null;
      file: string | null;
      line: number | null;
      called_from: { file: string; line: number; } | null;
      samples: number;
      share_fraction: number | null;
      top_stall: string | null;
      stalls: { reason: string; samples: number; }[];
      executed: number | null;
      threads_executed: number | null;
      waits_for: {
        address: number;
        sass: string | null;
        mnemonic: string | null;
        what: string;
        file: string | null;
        line: number | null;
      } | null;
    }[];
    instructions: {
      address: number;
      sass: string | null;
      mnemonic: string | null;
      file: string | null;
      line: number | null;
      called_from: { file: string; line: number; } | null;
      samples: number;
      share_fraction: number | null;
      top_stall: string | null;
      stalls: { reason: string; samples: number; }[];
      executed: number | null;
      threads_executed: number | null;
      waits_for: {
        address: number;
        sass: string | null;
        mnemonic: string | null;
        what: string;
        file: string | null;
        line: number | null;
      } | null;
    }[] | null;
    lines: {
      file: string | null;
      line: number | null;
      text: string | null;
      samples: number;
      share_fraction: number | null;
      stalls: { reason: string; samples: number; }[];
      instructions: number;
      executed: number | null;
    }[] | null;
    own_lines: {
      file: string | null;
      line: number | null;
      text: string | null;
      samples: number;
      share_fraction: number | null;
      stalls: { reason: string; samples: number; }[];
      instructions: number;
      executed: number | null;
    }[] | null;
    source_notes: string[];
    metrics: {
      name: string;
      unit: string;
      value: string | number | null;
      instances: { id: string | number | null; value: string | number | null; }[];
    }[] | null;
  }[];
  launches: {
    id: number;
    kind: "kernel" | "range" | "graph" | "command_list";
    name: string;
    short_name: string;
    function: string | null;
    family: "gemm/gemv" | "attention" | "norm" | "elementwise" | "copy/cast" | "gather/scatter" | "reduction" | "softmax/sampling" | "communication" | "memcpy" | "memset" | "other" | null;
    process: string | null;
    nvtx: string | null;
    grid: number[] | null;
    block: number[] | null;
    registers_per_thread: number | null;
    waves_per_sm: number | null;
    duration_ns: number | null;
    dram_bytes: number | null;
    dram_pct: number | null;
    memory_pct: number | null;
    sm_pct: number | null;
    achieved_occupancy_pct: number | null;
    verdict: "too small" | "memory bound" | "compute bound" | "latency bound" | "balanced" | null;
  }[] | null;
  names: Names;
  families: Names;
}

/** longpole ncu --compare --json */
export interface NcuCompare {
  schema: "longpole.ncu_compare/1";
  source: Source;
  trust: Trust;
  before: {
    source: {
      path: string;
      format: "ncu-rep" | "ncu-repz" | "ncu-csv";
      bytes: number;
      events: number;
      kernels: number;
      ranges: number;
      graphs: number;
      command_lists: number;
      ncu_version: string | null;
      cuda_version: string | null;
      driver_version: string | null;
      devices: {
        id: number;
        name: string;
        sm_count: number | null;
        memory_bytes: number | null;
        compute_capability: string | null;
      }[];
      processes: string[];
      settings: { option: string; value: string; }[];
      command_line: string | null;
    };
    trust: {
      grade: "good" | "noted" | "partial";
      notes: {
        code: string;
        severity: "info" | "notice" | "data_loss" | "error";
        count: number;
        message: string;
        hint: string;
        example: string | null;
        first_offset_bytes: number | null;
        time_ns: number | null;
      }[];
    };
  };
  cautions: { about: string; text: string; }[];
  names: {
    name: string;
    launches_before: number;
    launches_after: number;
    before_ns: number | null;
    after_ns: number | null;
    delta_ns: number | null;
    ratio: number | null;
    without_duration_before: number;
    without_duration_after: number;
  }[];
  pairs: {
    kind: "kernel" | "range" | "graph" | "command_list";
    before_id: number;
    after_id: number;
    name_before: string;
    name_after: string;
    short_name_before: string;
    short_name_after: string;
    matched_by: "name" | "function" | "order_and_shape" | "order";
    verdict_before: "too small" | "memory bound" | "compute bound" | "latency bound" | "balanced" | null;
    verdict_after: "too small" | "memory bound" | "compute bound" | "latency bound" | "balanced" | null;
    figures: { what: string; unit: string; before: number | null; after: number | null; ratio: number | null; }[];
    stalls: { what: string; unit: string; before: number | null; after: number | null; ratio: number | null; }[];
    rules_gone: { name: string; text: string; }[];
    rules_new: { name: string; text: string; }[];
  }[];
  only_before: { id: number; name: string; }[];
  only_after: { id: number; name: string; }[];
}
