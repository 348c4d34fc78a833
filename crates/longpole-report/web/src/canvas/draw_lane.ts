/** Draws what a lane holds in view. Work grows with the lane's rows times the picture's width, not with its events. */

import { Brush } from "./brush";
import { piecesFor, type Piece } from "./choose";
import type { Found } from "./find";
import type { Line } from "./layout";
import type { LaneBlocks, LaneModel } from "./model";
import { inView, nextReaching } from "./spans";
import type { View } from "./view";
import { FILL } from "./ink";

/** What all lanes of a picture share. */
export interface Scene {
  view: View;
  /** Where the view's start and end stand, in CSS pixels. */
  left: number;
  right: number;
  fills: Record<string, Uint16Array>;
  /** Label by name, as it is written into events. */
  label(name: number): string;
  /** Text of a detail by number. */
  detail(number: number): string;
  found: Found | null;
}

export function xOf(scene: Scene, t: number): number {
  return scene.left + ((t - scene.view.a) / (scene.view.b - scene.view.a)) * (scene.right - scene.left);
}

/** `top` is where the line stands in the picture. */
export function drawLane(brush: Brush, scene: Scene, line: Line, lane: LaneModel, top: number): void {
  const width = scene.right - scene.left;
  for (const piece of piecesFor(lane, scene.view, width)) {
    const rows = piece.level === null ? lane.events().spans.rows : lane.level(piece.level).spans.rows;
    for (let r = 0; r < rows; r++) drawRow(brush, scene, line, lane, piece, r, top + r * line.row_height);
    if (piece.summary) tellSummary(brush, scene, lane, piece, top, line);
  }
}

function drawRow(brush: Brush, scene: Scene, line: Line, lane: LaneModel, piece: Piece, r: number, top: number): void {
  const blocks: LaneBlocks | null = piece.level === null ? null : lane.level(piece.level);
  const source = blocks ?? lane.events();
  const { spans, name } = source;
  const fills = scene.fills[lane.lane.kind]!;
  const { a, b } = scene.view;
  const px_per_ns = (scene.right - scene.left) / (b - a);
  const least = 1 / brush.ratio;
  const height = line.row_height - (line.row_height > 6 ? 1 : 0);
  const named = line.row_height >= 12;
  const steps = lane.lane.kind === "steps" && named;
  const clip_left = scene.left + (Math.max(piece.a, a) - a) * px_per_ns;
  const clip_right = scene.left + (Math.min(piece.b, b) - a) * px_per_ns;
  const [from, to] = inView(spans, r, piece.a, piece.b);
  for (let at = from; at < to; ) {
    const i = spans.order[at]!;
    const end = spans.end[i]!;
    if (end < piece.a) {
      at += 1;
      continue;
    }
    const x0 = brush.snap(Math.max(clip_left, scene.left + (spans.start[i]! - a) * px_per_ns));
    const x1 = brush.snap(Math.min(clip_right, scene.left + (end - a) * px_per_ns));
    const w = Math.max(least, x1 - x0);
    // Neighbours of one colour are told apart by a gap, where there is room for one.
    const drawn = w >= 4 ? w - least : w;
    const id = name[i]!;
    const hit = scene.found === null || scene.found.names[id] === 1;
    const fill = hit ? (fills[id] ?? FILL.rest) : FILL.dim;
    if (steps && drawn >= 3) drawStep(brush, x0, top, drawn, height, stepLabel(scene, lane, blocks === null ? i : null, id), hit);
    else if (blocks === null || blocks.count[i] === 1) {
      const calm = named && drawn >= 14 ? write(brush, scene, fill, id, x0, top, drawn, height) : 0;
      brush.rect(fill, x0, top, drawn, height, calm);
      // Ranges are pale, for much is written on them; a line says where they reach.
      if (fill === FILL.ranges) brush.rect(FILL.calls, x0, top + height - 1, drawn, 1);
    } else drawBlock(brush, fill, blocks, i, x0, top, drawn, height, piece.summary && named);
    if (scene.found !== null && hit) brush.mark(x0, top + height - 2, Math.max(drawn, 1), 2);
    at += 1;
    // Behind a sliver the next one worth drawing is the first that reaches into another pixel.
    if (w <= least) at = nextReaching(spans, at, to, a + (x0 + least / 2 - scene.left) / px_per_ns);
  }
}

/** Writes the name, or but its glyph where there is no room; answers up to where the text stands. */
function write(brush: Brush, scene: Scene, fill: number, name: number, x: number, top: number, w: number, height: number): number {
  const look = brush.inks.fills[fill]!;
  const label = w < 34 ? look.glyph : look.glyph === "" ? scene.label(name) : `${look.glyph} ${scene.label(name)}`;
  if (label === "") return 0;
  const wide = brush.text(label, x + 3, top + height / 2 + 0.5, w - 4, fill === FILL.dim ? brush.inks.ink_faint : look.text);
  return wide === 0 ? 0 : Math.min(w, wide + 6);
}

/** A block is as full as its time is covered. */
function drawBlock(brush: Brush, fill: number, blocks: LaneBlocks, i: number, x: number, top: number, w: number, height: number, hatched: boolean): void {
  const extent = blocks.spans.end[i]! - blocks.spans.start[i]!;
  const share = extent > 0 ? Math.min(1, blocks.busy[i]! / extent) : 1;
  // Its ground says where it reaches, the bar how much of it is covered.
  const full = Math.max(2, brush.snap(height * share));
  if (w >= 3 && full < height - 1) brush.rect(FILL.dim, x, top, w, height);
  brush.rect(fill, x, top + height - full, w, full);
  if (hatched && w >= 4) brush.hatch(x, top, w, height);
}

/** A step's number, which is its detail, behind the name of its group. */
function stepLabel(scene: Scene, lane: LaneModel, at: number | null, name: number): string {
  const detail = at === null ? "" : scene.detail(lane.events().detail?.[at] ?? 0);
  return detail === "" ? scene.label(name) : `${scene.label(name)} \u00b7 ${detail}`;
}

function drawStep(brush: Brush, x: number, top: number, w: number, height: number, label: string, hit: boolean): void {
  const fill = hit ? FILL.steps : FILL.rest;
  const middle = brush.snap(top + height / 2);
  const text = brush.fit.fit(label, w - 16);
  const wide = text === "" ? 0 : brush.fit.width(text) + 8;
  const from = x + (w - wide) / 2;
  brush.rect(fill, x, top + 3, 1, height - 6);
  if (w >= 6) brush.rect(fill, x + w - 1, top + 3, 1, height - 6);
  if (wide === 0) brush.rect(fill, x, middle, w, 1);
  else {
    brush.rect(fill, x, middle, from - x, 1);
    brush.rect(fill, from + wide, middle, x + w - from - wide, 1);
    brush.text(text, from + 4, top + height / 2 + 0.5, wide, hit ? brush.inks.ink : brush.inks.ink_faint);
  }
}

/** Says once in each part without detail what is seen there. */
function tellSummary(brush: Brush, scene: Scene, lane: LaneModel, piece: Piece, top: number, line: Line): void {
  if (line.row_height < 12) return;
  const { spans, count } = lane.level(piece.level!);
  const [from, to] = inView(spans, 0, piece.a, piece.b);
  // The first block that hides something; a few are looked at, for single events may stand as blocks as well.
  let at = from;
  while (at < to && at < from + 200 && count[spans.order[at]!] === 1) at++;
  if (at >= to || count[spans.order[at]!] === 1) return;
  const i = spans.order[at]!;
  const x0 = Math.max(scene.left, xOf(scene, piece.a), xOf(scene, spans.start[i]!));
  const x1 = Math.min(scene.right, xOf(scene, piece.b));
  const text = brush.fit.fit("summary: detail not kept here", x1 - x0 - 12);
  // Too little of it says nothing.
  if (text.length > 12) brush.note(text, x0 + 3, top + 2, line.row_height - 5);
}
