/** Where lanes stand from top to bottom, and what is under a point. */

import type { LaneKind } from "../data";
import { piecesFor } from "./choose";
import type { LaneModel, Model } from "./model";
import { MOST_ROWS, spanAt } from "./spans";
import type { View } from "./view";

/** Heights in CSS pixels. */
export const GROUP_HEIGHT = 22;
export const LANE_GAP = 5;
const ROW_HEIGHT: Record<LaneKind, number> = { steps: 20, ranges: 16, ops: 16, calls: 16, stream: 20, gaps: 14 };
/** Rows of a lane that was made small. */
const SMALL_ROW_HEIGHT = 4;
const LEAST_LANE_HEIGHT = 14;

export interface Line {
  y: number;
  height: number;
  group: number;
  /** `null`: the group's heading. */
  lane: LaneModel | null;
  row_height: number;
}

export interface Group {
  title: string;
  lanes: LaneModel[];
}

/** Neighbouring lanes of equal group. */
export function groupsOf(model: Model): Group[] {
  const groups: Group[] = [];
  for (const lane of model.lanes) {
    const last = groups[groups.length - 1];
    if (last !== undefined && last.title === lane.lane.group) last.lanes.push(lane);
    else groups.push({ title: lane.lane.group, lanes: [lane] });
  }
  return groups;
}

export interface Folding {
  /** Groups of which only the heading is shown, by number. */
  groups: ReadonlySet<number>;
  /** Lanes with low rows and no names, by number. */
  lanes: ReadonlySet<number>;
}

export function linesOf(groups: Group[], folding: Folding): Line[] {
  const lines: Line[] = [];
  let y = 0;
  groups.forEach(({ lanes }, group) => {
    lines.push({ y, height: GROUP_HEIGHT, group, lane: null, row_height: 0 });
    y += GROUP_HEIGHT;
    if (folding.groups.has(group)) return;
    for (const lane of lanes) {
      const row_height = folding.lanes.has(lane.index) ? SMALL_ROW_HEIGHT : ROW_HEIGHT[lane.lane.kind];
      const height = Math.max(LEAST_LANE_HEIGHT, Math.min(lane.rows, MOST_ROWS) * row_height) + LANE_GAP;
      lines.push({ y, height, group, lane, row_height });
      y += height;
    }
  });
  return lines;
}

export function heightOf(lines: Line[]): number {
  const last = lines[lines.length - 1];
  return last === undefined ? 0 : last.y + last.height;
}

/** Numbers of the lines that touch `[top, bottom]`. */
export function linesIn(lines: Line[], top: number, bottom: number): [from: number, to: number] {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lines[middle]!.y + lines[middle]!.height <= top) low = middle + 1;
    else high = middle;
  }
  let to = low;
  while (to < lines.length && lines[to]!.y < bottom) to++;
  return [low, to];
}

export function lineAt(lines: Line[], y: number): Line | null {
  const [from, to] = linesIn(lines, y, y + 1);
  return from < to && y >= 0 ? lines[from]! : null;
}

/** The heading that stays in sight at the top while its lanes are scrolled by, and where it stands in the picture. */
export function pinnedHeading(lines: Line[], top: number): { line: Line; y: number } | null {
  const [first, last] = linesIn(lines, top, top + GROUP_HEIGHT);
  const shown = lines[first];
  if (shown === undefined || first === last || (shown.lane === null && shown.y >= top)) return null;
  let at = first;
  while (lines[at]!.lane !== null) at--;
  // The next heading pushes it out.
  const next = lines.slice(first + 1, last).find((line) => line.lane === null);
  return { line: lines[at]!, y: next === undefined ? 0 : Math.min(0, next.y - top - GROUP_HEIGHT) };
}

/** The line under `y` pixels from the picture's top, the pinned heading before all. */
export function lineUnder(lines: Line[], y: number, top: number): Line | null {
  const pinned = pinnedHeading(lines, top);
  return pinned !== null && y < pinned.y + GROUP_HEIGHT ? pinned.line : lineAt(lines, y + top);
}

export type Hit = { event: number } | { lane: LaneModel; level: number; at: number };

/** What is drawn at time `t`, `y` pixels below the line's top; `slack_ns` is how far beside it counts as well. */
export function hitLine(line: Line, y: number, t: number, view: View, width_px: number, slack_ns: number): Hit | null {
  const { lane } = line;
  if (lane === null || y < 0) return null;
  const row = Math.floor(y / line.row_height);
  for (const piece of piecesFor(lane, view, width_px)) {
    if (t < piece.a || t > piece.b) continue;
    const source = piece.level === null ? lane.events() : lane.level(piece.level);
    const at = spanAt(source.spans, row, t, slack_ns);
    if (at < 0) return null;
    if (piece.level === null) return { event: lane.lane.first + at };
    // A block of one event is that event, when it is kept.
    const event = oneEvent(lane, piece.level, at);
    return event === null ? { lane, level: piece.level, at } : { event };
  }
  return null;
}

/** The kept event that a block stands for alone. */
function oneEvent(lane: LaneModel, level: number, at: number): number | null {
  const blocks = lane.level(level);
  if (blocks.count[at] !== 1) return null;
  const { spans } = lane.events();
  const start = blocks.spans.start[at]!;
  const found = spanAt(spans, blocks.spans.row?.[at] ?? 0, start, 0);
  return found >= 0 && spans.start[found] === start && spans.end[found] === blocks.spans.end[at] ? lane.lane.first + found : null;
}
