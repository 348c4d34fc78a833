/** One picture of the lanes: labels, events, what is chosen, arrows. */

import type { Brush } from "./brush";
import { drawLane, xOf, type Scene } from "./draw_lane";
import { GROUP_HEIGHT, heightOf, linesIn, pinnedHeading, type Hit, type Line } from "./layout";
import type { EventRef, LaneModel } from "./model";
import { visible } from "../text";
import type { TimelineState } from "./state";
import { ticks } from "./time";

/** Arrows drawn at once, of a graph launch's thousands of kernels the first, the last, and some between. */
const MOST_ARROWS = 24;
/** Texts in one picture. */
const MOST_TEXTS = 600;

export interface Body {
  width: number;
  height: number;
  /** How far the lanes are scrolled down. */
  top: number;
  hover: Hit | null;
  cursor: number | null;
  focused: boolean;
  /** 0..1: how bright a flash is. */
  flash: number;
}

export function drawBody(brush: Brush, scene: Scene, state: TimelineState, body: Body): void {
  const { ctx, inks } = brush;
  ctx.fillStyle = inks.ground;
  ctx.fillRect(0, 0, body.width, body.height);
  drawGrid(brush, scene, state, body);
  const [from, to] = linesIn(state.lines, body.top, body.top + body.height);
  const shown = state.lines.slice(from, to);
  brush.begin(MOST_TEXTS);
  clipped(brush, scene, body, () => {
    drawRange(brush, scene, state, body);
    for (const line of shown) if (line.lane !== null) drawLane(brush, scene, line, line.lane, line.y - body.top);
    brush.flush();
    drawFlash(brush, scene, state, body);
    drawChosen(brush, scene, state, body);
    if (body.cursor === null) return;
    ctx.fillStyle = inks.focus;
    ctx.globalAlpha = 0.5;
    ctx.fillRect(Math.round(xOf(scene, body.cursor)), 0, 1, body.height);
    ctx.globalAlpha = 1;
  });
  brush.begin(MOST_TEXTS);
  for (const line of shown) {
    if (line.lane === null) drawHeading(brush, state, line, line.y - body.top, body.width);
    else drawLabel(brush, scene, state, line, line.lane, body);
  }
  brush.flush();
  // Over the headings of groups, which they cross.
  clipped(brush, scene, body, () => drawArrows(brush, scene, state, body));
  const pinned = pinnedHeading(state.lines, body.top);
  if (pinned !== null) {
    drawHeading(brush, state, pinned.line, pinned.y, body.width);
    brush.flush();
  }
  if (heightOf(state.lines) === 0) brush.ctx.fillText("no lanes", 8, 20);
}

/** Draws right of the labels only. */
function clipped({ ctx }: Brush, scene: Scene, body: Body, draw: () => void): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(scene.left, 0, scene.right - scene.left, body.height);
  ctx.clip();
  draw();
  ctx.restore();
}

function drawGrid(brush: Brush, scene: Scene, state: TimelineState, body: Body): void {
  brush.ctx.fillStyle = brush.inks.line;
  brush.ctx.globalAlpha = 0.6;
  for (const t of ticks(scene.view.a, scene.view.b, scene.right - scene.left, 90, state.whole.a).at) {
    brush.ctx.fillRect(Math.round(xOf(scene, t)), 0, 1, body.height);
  }
  brush.ctx.globalAlpha = 1;
}

function drawHeading(brush: Brush, state: TimelineState, line: Line, y: number, width: number): void {
  const { ctx, inks } = brush;
  const { title, lanes } = state.groups[line.group]!;
  ctx.fillStyle = inks.raised;
  ctx.fillRect(0, y, width, line.height);
  ctx.fillStyle = inks.line;
  ctx.fillRect(0, y, width, 1);
  const folded = state.foldedGroups.has(line.group);
  const aside = folded ? ` \u00b7 ${lanes.length} lane${lanes.length === 1 ? "" : "s"}, folded` : "";
  brush.text(`${folded ? "\u25b8" : "\u25be"} ${visible(title)}${aside}`, 6, y + line.height / 2 + 0.5, width - 12, inks.ink);
}

function drawLabel(brush: Brush, scene: Scene, state: TimelineState, line: Line, { lane, index }: LaneModel, body: Body): void {
  const { ctx, inks } = brush;
  const y = line.y - body.top;
  const chosen = index === state.lane;
  if (chosen) {
    ctx.fillStyle = inks.accent_ground;
    ctx.fillRect(0, y, scene.left - 1, line.height - 1);
    // A bar as well, for those who cannot tell the ground.
    ctx.fillStyle = body.focused ? inks.focus : inks.accent;
    ctx.fillRect(0, y, 3, line.height - 1);
  }
  ctx.fillStyle = inks.line;
  ctx.fillRect(0, y + line.height - 3, body.width, 1);
  ctx.fillRect(scene.left - 1, y, 1, line.height);
  // A high lane's label stays in sight while any of the lane is, under the pinned heading.
  const middle = Math.min(Math.max(y, y < 0 ? GROUP_HEIGHT : 0) + Math.min(line.height, 20) / 2, y + line.height - 6);
  brush.text(visible(lane.title), 12, middle, scene.left - 18, chosen ? inks.ink : inks.ink_soft);
}

/** Where an event is drawn, whether in view or not. */
export function boxOf(scene: Scene, state: TimelineState, top: number, ref: EventRef): { x0: number; x1: number; y: number; h: number } | null {
  const line = state.lines.find((candidate) => candidate.lane === ref.lane);
  if (line === undefined) return null;
  const { start_ns, end_ns, row } = state.model.facts(ref);
  const x0 = xOf(scene, start_ns);
  return { x0, x1: Math.max(x0 + 2, xOf(scene, end_ns)), y: line.y - top + row * line.row_height, h: line.row_height };
}

function outline(brush: Brush, scene: Scene, box: { x0: number; x1: number; y: number; h: number }, colour: string, wide: number): void {
  const x0 = Math.max(scene.left - 4, box.x0 - 1);
  const x1 = Math.min(scene.right + 4, box.x1 + 1);
  if (x1 < x0) return;
  brush.ctx.strokeStyle = colour;
  brush.ctx.lineWidth = wide;
  brush.ctx.strokeRect(x0, box.y - 1, x1 - x0, box.h + 1);
}

function drawChosen(brush: Brush, scene: Scene, state: TimelineState, body: Body): void {
  const boxes: [Hit, string, number][] = [];
  if (body.hover !== null) boxes.push([body.hover, brush.inks.ink_soft, 1]);
  if (state.block !== null) boxes.push([{ lane: state.model.lanes[state.block.lane]!, level: state.block.level, at: state.block.at }, brush.inks.ink, 2]);
  if (state.selected !== null) boxes.push([{ event: state.selected.event }, brush.inks.ink, 2]);
  for (const [hit, colour, wide] of boxes) {
    const box = hitBox(scene, state, body, hit);
    if (box === null) continue;
    if (wide > 1) outline(brush, scene, { ...box, y: box.y - 1, h: box.h + 2, x0: box.x0 - 1, x1: box.x1 + 1 }, brush.inks.selected, 2);
    outline(brush, scene, box, colour, wide);
  }
}

function hitBox(scene: Scene, state: TimelineState, body: Body, hit: Hit): { x0: number; x1: number; y: number; h: number } | null {
  if ("event" in hit) {
    const ref = state.model.find(hit.event);
    return ref === null ? null : boxOf(scene, state, body.top, ref);
  }
  const line = state.lines.find(({ lane }) => lane === hit.lane);
  if (line === undefined) return null;
  const { spans } = hit.lane.level(hit.level);
  const x0 = xOf(scene, spans.start[hit.at]!);
  const row = spans.row?.[hit.at] ?? 0;
  return { x0, x1: Math.max(x0 + 2, xOf(scene, spans.end[hit.at]!)), y: line.y - body.top + row * line.row_height, h: line.row_height };
}

function drawRange(brush: Brush, scene: Scene, state: TimelineState, body: Body): void {
  if (state.range === null) return;
  const x0 = xOf(scene, state.range.a);
  const x1 = xOf(scene, state.range.b);
  const { ctx, inks } = brush;
  ctx.fillStyle = inks.accent;
  ctx.globalAlpha = 0.12;
  ctx.fillRect(x0, 0, x1 - x0, body.height);
  ctx.globalAlpha = 1;
  ctx.fillRect(Math.round(x0), 0, 1, body.height);
  ctx.fillRect(Math.round(x1), 0, 1, body.height);
}

function drawFlash(brush: Brush, scene: Scene, state: TimelineState, body: Body): void {
  const { flash } = state;
  if (flash === null || body.flash <= 0) return;
  const line = state.lines.find(({ lane }) => lane !== null && lane.index === flash.lane);
  const { ctx, inks } = brush;
  const x0 = Math.max(scene.left, xOf(scene, flash.a));
  const x1 = Math.min(scene.right, Math.max(x0 + 2, xOf(scene, flash.b)));
  ctx.globalAlpha = 0.45 * body.flash;
  ctx.fillStyle = inks.selected;
  if (line === undefined) ctx.fillRect(x0, 0, x1 - x0, body.height);
  else ctx.fillRect(x0, line.y - body.top, x1 - x0, line.height - 3);
  ctx.globalAlpha = 1;
}

function some(events: Uint32Array): Uint32Array {
  if (events.length <= MOST_ARROWS) return events;
  return Uint32Array.from({ length: MOST_ARROWS }, (_, k) => events[Math.round((k * (events.length - 1)) / (MOST_ARROWS - 1))]!);
}

/** From the call to what it launched, as curves; the ends that are out of sight are where the curves leave the picture. */
function drawArrows(brush: Brush, scene: Scene, state: TimelineState, body: Body): void {
  const { selected, model } = state;
  if (selected === null) return;
  const { launch } = model.facts(selected);
  const call = launch === null ? selected : model.find(launch);
  if (call === null) return;
  const work = launch === null ? some(model.launchedBy(selected.event)) : [selected.event];
  const from = boxOf(scene, state, body.top, call);
  if (from === null || work.length === 0) return;
  const { ctx, inks } = brush;
  ctx.strokeStyle = inks.focus;
  ctx.fillStyle = inks.focus;
  ctx.lineWidth = work.length > 8 ? 1 : 1.5;
  if (launch !== null) outline(brush, scene, from, inks.focus, 1.5);
  for (const event of work) {
    const ref = model.find(event);
    const to = ref === null ? null : boxOf(scene, state, body.top, ref);
    if (to === null) continue;
    // Curves far outside of the picture cost and cannot be seen.
    const limit = (x: number) => Math.min(scene.right + 2000, Math.max(scene.left - 2000, x));
    const [x0, x1] = [limit((from.x0 + Math.min(from.x1, from.x0 + 40)) / 2), limit(to.x0)];
    const down = to.y > from.y;
    const y0 = down ? from.y + from.h : from.y;
    const y1 = to.y + to.h / 2;
    const bend = Math.min(60, Math.max(12, Math.abs(x1 - x0) / 2));
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0, y0 + (down ? bend : -bend), x1 - bend, y1, x1 - 5, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7, y1 - 4);
    ctx.lineTo(x1 - 7, y1 + 4);
    ctx.fill();
  }
}
