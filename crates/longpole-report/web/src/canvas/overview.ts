/** How busy each part of the whole window is: the strip above the timeline. */

import { levelFor } from "./choose";
import { groupsOf } from "./layout";
import type { LaneModel, Model } from "./model";

export interface Strip {
  title: string;
  /** Covered share of each column, 0..1. */
  busy: Float32Array;
}

/** Strips there may be; further devices are left to the lanes. */
const MOST_STRIPS = 8;

/** Adds to `columns` what share of each a lane's events cover. */
export function occupancy(lane: LaneModel, start: number, end: number, columns: Float32Array): void {
  const ns_per_column = (end - start) / columns.length;
  const resolutions = lane.lane.levels.map((level) => level.resolution_ns);
  // Of lanes that keep not every event the finest level is the best there is.
  const k = Math.max(levelFor(resolutions, ns_per_column), lane.whole || resolutions.length === 0 ? -1 : 0);
  const blocks = k < 0 ? null : lane.level(k);
  const { spans } = blocks ?? lane.events();
  for (let i = 0; i < spans.n; i++) {
    const from = (spans.start[i]! - start) / ns_per_column;
    const to = (spans.end[i]! - start) / ns_per_column;
    const share = blocks === null || to <= from ? 1 : blocks.busy[i]! / (spans.end[i]! - spans.start[i]!);
    for (let column = Math.max(0, Math.floor(from)); column < to && column < columns.length; column++) {
      columns[column]! += (Math.min(to, column + 1) - Math.max(from, column)) * share;
    }
  }
}

/** One strip a device: its busiest stream. Without devices, one a group of host lanes. */
export function strips(model: Model, columns: number): Strip[] {
  const groups = groupsOf(model);
  const kind = groups.some(({ lanes }) => lanes.some(({ lane }) => lane.kind === "stream")) ? "stream" : null;
  const made: Strip[] = [];
  for (const { title, lanes } of groups) {
    const counted = lanes.filter(({ lane }) => (kind === null ? lane.kind !== "gaps" && lane.kind !== "steps" : lane.kind === kind));
    if (counted.length === 0 || made.length === MOST_STRIPS) continue;
    const busy = new Float32Array(columns);
    for (const lane of counted) {
      const own = new Float32Array(columns);
      occupancy(lane, model.start, model.end, own);
      for (let i = 0; i < columns; i++) busy[i] = Math.min(1, Math.max(busy[i]!, own[i]!));
    }
    made.push({ title, busy });
  }
  return made;
}
