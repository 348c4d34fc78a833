/**
 * Colours of families and of idle causes: two ramps, cool and warm, that share no colour. The colours themselves stand in theme.css; each
 * has a glyph as well, and a pattern that a canvas or a bar may draw over it, so that nothing is told by colour alone.
 */

export interface Look {
  /** A CSS custom property, e.g. `--family-gemm`. */
  token: string;
  /** One character that stands for it. */
  glyph: string;
  /** 0 plain, 1 rising lines, 2 falling lines, 3 dots, 4 level lines, 5 upright lines, 6 crossed lines. */
  pattern: 0 | 1 | 2 | 3 | 4 | 5 | 6;
}

const look = (token: string, glyph: string, pattern: Look["pattern"]): Look => ({ token, glyph, pattern });

export const FAMILY_LOOKS: Record<string, Look> = {
  "gemm/gemv": look("--family-gemm", "\u25a0", 0),
  attention: look("--family-attention", "\u25b2", 1),
  norm: look("--family-norm", "\u25c6", 3),
  elementwise: look("--family-elementwise", "\u25cf", 0),
  "copy/cast": look("--family-copy-cast", "\u25c0", 2),
  "gather/scatter": look("--family-gather-scatter", "\u2739", 6),
  reduction: look("--family-reduction", "\u25bc", 4),
  "softmax/sampling": look("--family-softmax-sampling", "\u25cb", 3),
  communication: look("--family-communication", "\u25b6", 5),
  memcpy: look("--family-memcpy", "\u25a1", 1),
  memset: look("--family-memset", "\u25b3", 2),
  other: look("--family-other", "\u25c7", 0),
};

export const CAUSE_LOOKS: Record<string, Look> = {
  blocked_in_sync: look("--cause-blocked-in-sync", "\u25a0", 0),
  dispatch: look("--cause-dispatch", "\u25cf", 0),
  python: look("--cause-python", "\u25b2", 1),
  outside_operators: look("--cause-outside-operators", "\u25c6", 2),
  allocation: look("--cause-allocation", "\u25a1", 3),
  graph_launch: look("--cause-graph-launch", "\u25b6", 4),
  compile_or_load: look("--cause-compile-or-load", "\u25bc", 5),
  profiler: look("--cause-profiler", "\u2739", 6),
  launch_latency: look("--cause-launch-latency", "\u25cb", 1),
  event_wait: look("--cause-event-wait", "\u25c7", 2),
  dependency: look("--cause-dependency", "\u25b3", 3),
  graph_internal: look("--cause-graph-internal", "\u25b7", 4),
  copy_engine: look("--cause-copy-engine", "\u25bd", 5),
  nothing_recorded: look("--cause-nothing-recorded", "\u2013", 6),
};

const OTHER = look("--family-other", "\u25c7", 0);

export function familyLook(family: string): Look {
  return Object.hasOwn(FAMILY_LOOKS, family) ? (FAMILY_LOOKS[family] as Look) : OTHER;
}

export function causeLook(cause: string): Look {
  return Object.hasOwn(CAUSE_LOOKS, cause) ? (CAUSE_LOOKS[cause] as Look) : OTHER;
}

/** The colour of a token as the theme of the moment gives it; for drawing on a canvas. */
export function colour(token: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(token).trim();
}
