/** Which of a lane's data is drawn where: events, or the blocks of a level. */

import type { LaneModel } from "./model";
import { inView, lowerBound, positionsIn } from "./spans";
import type { View } from "./view";

/** A part of the view with one source. */
export interface Piece {
  a: number;
  b: number;
  /** `null`: events; else the number of the level. */
  level: number | null;
  /** Whether the blocks hide events that would be seen one by one at this zoom, had they been kept. */
  summary: boolean;
}

/** The coarsest level whose blocks join only what is about a pixel apart; -1 when even the finest is coarser. */
export function levelFor(resolutions: number[], ns_per_px: number): number {
  let found = -1;
  // A pixel and a half: levels are some factor apart, and the next finer one would be several times the work for the same picture.
  resolutions.forEach((resolution, k) => {
    if (resolution <= 1.5 * ns_per_px) found = k;
  });
  return found;
}

/** Whether one complete window of the lane holds all of `[a, b]`. */
export function isComplete(lane: LaneModel, a: number, b: number): boolean {
  if (lane.whole) return true;
  const k = lowerBound(lane.complete.to, b);
  return k < lane.complete.to.length && lane.complete.from[k]! <= a;
}

/** Kept events that may touch the view, over all rows. */
function keptInView(lane: LaneModel, view: View): number {
  const { spans } = lane.events();
  let count = 0;
  for (let r = 0; r < spans.rows; r++) {
    const [from, to] = inView(spans, r, view.a, view.b);
    count += to - from;
  }
  return count;
}

/**
 * Pieces of the view, ascending and without holes. Events are drawn where all of them are kept and they are few enough to be told
 * apart; blocks finer than a pixel look the same as events and are fewer; coarser ones stand in only for what was not kept.
 */
export function piecesFor(lane: LaneModel, view: View, width_px: number): Piece[] {
  const { a, b } = view;
  const levels = lane.lane.levels;
  const whole = [{ a, b, level: null, summary: false }];
  if (levels.length === 0) return whole;
  const ns_per_px = (b - a) / Math.max(1, width_px);
  if (isComplete(lane, a, b) && keptInView(lane, view) <= 2 * width_px) return whole;
  const k = levelFor(
    levels.map((level) => level.resolution_ns),
    ns_per_px,
  );
  if (k >= 0) return [{ a, b, level: k, summary: false }];
  if (lane.whole) return whole;
  return cut(lane, view);
}

/** The view cut at the ends of complete windows. */
function cut(lane: LaneModel, { a, b }: View): Piece[] {
  const { from, to } = lane.complete;
  const pieces: Piece[] = [];
  let at = a;
  for (let k = lowerBound(to, a); k < to.length && from[k]! < b && at < b; k++) {
    const begin = Math.max(at, from[k]!);
    const end = Math.min(b, to[k]!);
    if (end <= begin) continue;
    if (begin > at) pieces.push({ a: at, b: begin, level: 0, summary: true });
    pieces.push({ a: begin, b: end, level: null, summary: false });
    at = end;
  }
  if (at < b) pieces.push({ a: at, b, level: 0, summary: true });
  return pieces;
}

/** What a range holds of one lane. */
export interface RangeSums {
  count: number;
  busy_ns: number;
  /** Whether it was read from blocks that reach over the range's ends. */
  about: boolean;
}

/** Events and covered time of `[a, b]`: exact where the events are kept, from the finest blocks elsewhere. */
export function rangeSums(lane: LaneModel, a: number, b: number): RangeSums {
  const sums: RangeSums = { count: 0, busy_ns: 0, about: false };
  const pieces = lane.whole || lane.lane.levels.length === 0 ? [{ a, b, level: null }] : cut(lane, { a, b });
  for (const piece of pieces) {
    const events = lane.events();
    const blocks = piece.level === null ? null : lane.level(piece.level);
    const { spans } = blocks ?? events;
    let frontier = piece.a;
    const [first, last] = positionsIn(spans, piece.a, piece.b);
    for (let i = first; i < last; i++) {
      const start = spans.start[i]!;
      const end = spans.end[i]!;
      if (end < piece.a || start > piece.b) continue;
      const from = Math.max(piece.a, start);
      const to = Math.min(piece.b, end);
      // What reaches over the seam of two pieces belongs to the first of them.
      if (!(start < piece.a && piece.a > a)) sums.count += blocks === null ? 1 : blocks.count[i]!;
      if (blocks !== null && (from > start || to < end)) sums.about = true;
      const open = Math.max(frontier, from);
      if (to > open) {
        const share = blocks === null || end <= start ? 1 : Math.min(1, blocks.busy[i]! / (end - start));
        if (blocks !== null && spans.rows > 1) sums.about = true;
        sums.busy_ns += (to - open) * share;
        frontier = to;
      }
    }
  }
  sums.busy_ns = Math.round(sums.busy_ns);
  return sums;
}
