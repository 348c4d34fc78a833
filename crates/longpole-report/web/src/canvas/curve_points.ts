/** Step curves over time: what is drawn of them, and what they are at a time. */

export interface Points {
  t: Float64Array;
  v: Float64Array;
}

/** The value at `t`; `null` before the first point. */
export function valueAt({ t, v }: Points, at: number): number | null {
  const after = upperBound(t, at);
  return after === 0 ? null : v[after - 1]!;
}

/** First position whose value is above `most`. */
export function upperBound(values: Float64Array, most: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Position of the largest value, the first of equals; -1 without points. */
export function peakOf({ v }: Points): number {
  let best = -1;
  for (let i = 0; i < v.length; i++) if (best < 0 || v[i]! > v[best]!) best = i;
  return best;
}

/** What a column of pixels holds: the value it begins with, the extremes in it, the value it ends with. */
export interface Column {
  x: number;
  first: number;
  least: number;
  most: number;
  last: number;
}

/** Columns of the view `[a, b]` over `width` pixels; those where nothing is known or nothing changes are left out. */
export function columnsOf(points: Points, a: number, b: number, width: number): Column[] {
  const { t, v } = points;
  const columns: Column[] = [];
  const ns_per_px = (b - a) / Math.max(1, width);
  let value = valueAt(points, a);
  if (value !== null) columns.push({ x: 0, first: value, least: value, most: value, last: value });
  let column: Column | null = null;
  for (let i = upperBound(t, a); i < t.length && t[i]! <= b; i++) {
    const x = Math.min(width - 1, Math.floor((t[i]! - a) / ns_per_px));
    const after = v[i]!;
    if (column === null || column.x !== x) {
      const first: number = value ?? after;
      columns.push((column = { x, first, least: first, most: first, last: first }));
    }
    column.least = Math.min(column.least, after);
    column.most = Math.max(column.most, after);
    column.last = value = after;
  }
  return columns;
}

/** The least and the largest value that the view shows; `null` when it shows none. */
export function extremes(points: Points, a: number, b: number): [number, number] | null {
  let least = Infinity;
  let most = -Infinity;
  const before = valueAt(points, a);
  if (before !== null) least = most = before;
  for (let i = upperBound(points.t, a); i < points.t.length && points.t[i]! <= b; i++) {
    least = Math.min(least, points.v[i]!);
    most = Math.max(most, points.v[i]!);
  }
  return least <= most ? [least, most] : null;
}
