/** Causes of idle time by their codes, in the words that `longpole idle` has for them. */
export const CAUSES: Record<string, string> = {
  blocked_in_sync: "host waited, device had no work left",
  dispatch: "an operator's own host time",
  python: "in a recorded Python function",
  outside_operators: "host code outside operators",
  allocation: "allocating or freeing memory",
  graph_launch: "host was launching a graph",
  compile_or_load: "compiling, tuning, loading code",
  profiler: "the profiler's own work",
  launch_latency: "launch call to kernel's start",
  event_wait: "stream waited for an event",
  dependency: "waited for another stream",
  graph_internal: "between kernels of one graph",
  copy_engine: "between computing and copying",
  nothing_recorded: "nothing in the trace says why",
};
