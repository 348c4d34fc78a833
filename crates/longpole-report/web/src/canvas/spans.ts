/**
 * Time spans on rows, found by time.
 *
 * Spans arrive sorted by start. They are put in order of row, then start, and each row keeps the running maximum of its ends. That
 * maximum never falls, so the first span that may reach into a view is found by binary search, also when a long span began far
 * before the view and shorter ones followed it in the same row.
 */

export interface Spans {
  /** Spans there are. */
  n: number;
  /** Start and end by span, in nanoseconds. */
  start: Float64Array;
  end: Float64Array;
  /** Rows there are, at least 1. */
  rows: number;
  /** Row of each span; `null` when all are on row 0. */
  row: Uint16Array | null;
  /** Spans in order of row, then start. Row `r` holds `order[rowAt[r]] .. order[rowAt[r + 1] - 1]`. */
  order: Uint32Array;
  rowAt: Uint32Array;
  /** Largest end of the row's spans up to here, by position in `order`. */
  reach: Float64Array;
  /** Largest end of each {@link CHUNK} positions in `order`, of whatever rows. */
  chunk_end: Float64Array;
}

const CHUNK = 64;

/** Rows a lane may have; deeper spans share the last one. */
export const MOST_ROWS = 256;

/** `start` must never fall. `rows` is what the lane asks for. */
export function makeSpans(start: Float64Array, dur: Float64Array, rowOf: Uint32Array | null, rows: number): Spans {
  const n = Math.min(start.length, dur.length, rowOf === null ? Infinity : rowOf.length);
  const end = new Float64Array(n);
  for (let i = 0; i < n; i++) end[i] = start[i]! + dur[i]!;
  const count = Math.max(1, Math.min(MOST_ROWS, Math.floor(rows) || 1));
  const order = new Uint32Array(n);
  const rowAt = new Uint32Array(count + 1);
  let row: Uint16Array | null = null;
  if (rowOf === null || count === 1) {
    for (let i = 0; i < n; i++) order[i] = i;
    rowAt.fill(n, 1);
  } else {
    row = new Uint16Array(n);
    for (let i = 0; i < n; i++) {
      row[i] = Math.min(rowOf[i]!, count - 1);
      rowAt[row[i]! + 1]!++;
    }
    for (let r = 0; r < count; r++) rowAt[r + 1]! += rowAt[r]!;
    const next = rowAt.slice(0, count);
    for (let i = 0; i < n; i++) order[next[row[i]!]!++] = i;
  }
  const reach = new Float64Array(n);
  for (let r = 0; r < count; r++) {
    let most = -Infinity;
    for (let at = rowAt[r]!; at < rowAt[r + 1]!; at++) {
      most = Math.max(most, end[order[at]!]!);
      reach[at] = most;
    }
  }
  const chunk_end = new Float64Array(Math.ceil(n / CHUNK)).fill(-Infinity);
  for (let at = 0; at < n; at++) chunk_end[Math.floor(at / CHUNK)] = Math.max(chunk_end[Math.floor(at / CHUNK)]!, end[order[at]!]!);
  return { n, start, end, rows: count, row, order, rowAt, reach, chunk_end };
}

/** First position in `[from, to)` of ascending `values` that is at least `least`; `to` when none is. */
export function lowerBound(values: ArrayLike<number>, least: number, from = 0, to = values.length): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle]! < least) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * Positions in `order` of row `r` that may touch the view `[a, b]`: all that do lie in `[from, to)`, and outside of it none does.
 * Inside of it a span may end before `a` when a longer one of its row covers it.
 */
export function inView(spans: Spans, r: number, a: number, b: number): [from: number, to: number] {
  const { order, rowAt, reach, start } = spans;
  const first = rowAt[r]!;
  const last = rowAt[r + 1]!;
  let low = first;
  let high = last;
  // The first that starts after the view.
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (start[order[middle]!]! <= b) low = middle + 1;
    else high = middle;
  }
  return [lowerBound(reach, a, first, low), low];
}

/**
 * First position in `[at, to)` whose span ends at `t` or later; `to` when none does. Looks at one number for each {@link CHUNK} spans
 * that end earlier, so that going over a dense row from pixel to pixel costs a fraction of its spans.
 */
export function nextReaching(spans: Spans, at: number, to: number, t: number): number {
  const { order, end, chunk_end } = spans;
  while (at < to) {
    if (at % CHUNK === 0 && chunk_end[at / CHUNK]! < t) at += CHUNK;
    else if (end[order[at]!]! >= t) return at;
    else at += 1;
  }
  return to;
}

/**
 * The span of row `r` at time `t`, or the nearest one that is at most `slack` away; -1 when there is none. Of several that cover `t`
 * the one that started last wins, since it is drawn on top.
 */
export function spanAt(spans: Spans, r: number, t: number, slack: number): number {
  if (r < 0 || r >= spans.rows) return -1;
  const [from, to] = inView(spans, r, t - slack, t + slack);
  let best = -1;
  let distance = Infinity;
  for (let at = to - 1; at >= from; at--) {
    const i = spans.order[at]!;
    const away = spans.start[i]! > t ? spans.start[i]! - t : spans.end[i]! < t ? t - spans.end[i]! : 0;
    if (away <= slack && away < distance) {
      best = i;
      distance = away;
    }
    // What began earlier can at best cover `t`, which nothing beats but what was found already.
    if (distance === 0) break;
  }
  return best;
}

/** Spans that may touch `[a, b]` on any row: all that do are in `[first, last)`, in order of start. */
export function positionsIn(spans: Spans, a: number, b: number): [first: number, last: number] {
  let first = spans.n;
  let last = 0;
  for (let r = 0; r < spans.rows; r++) {
    const [from, to] = inView(spans, r, a, b);
    if (from >= to) continue;
    first = Math.min(first, spans.order[from]!);
    last = Math.max(last, spans.order[to - 1]! + 1);
  }
  return [Math.min(first, last), last];
}
