/** The overview strip and the ruler above the lanes. */

import { FONT } from "./brush";
import { FILL, type Inks } from "./ink";
import type { TextFit } from "./names";
import type { Strip } from "./overview";
import { duration, ticks } from "./time";
import type { View } from "./view";
import { visible } from "../text";

/** Heights in CSS pixels. */
export const OVERVIEW = 40;
export const RULER = 22;
export const HEAD = OVERVIEW + RULER;

export interface Head {
  fit: TextFit;
  width: number;
  left: number;
  right: number;
  whole: View;
  view: View;
  strips: Strip[];
  /** Columns of the overview that hold something found. */
  marks: Uint8Array | null;
  range: View | null;
  /** Where the pointer is, in time. */
  cursor: number | null;
}

const at = (t: number, over: View, left: number, right: number) => left + ((t - over.a) / (over.b - over.a)) * (right - left);

export function drawHead(ctx: CanvasRenderingContext2D, inks: Inks, head: Head): void {
  const { width } = head;
  ctx.fillStyle = inks.ground;
  ctx.fillRect(0, 0, width, HEAD);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  drawOverview(ctx, inks, head);
  drawRuler(ctx, inks, head);
  ctx.fillStyle = inks.line_strong;
  ctx.fillRect(0, HEAD - 1, width, 1);
}

function drawOverview(ctx: CanvasRenderingContext2D, inks: Inks, { fit, left, right, whole, view, strips, marks }: Head): void {
  const height = OVERVIEW - 6;
  ctx.fillStyle = inks.sunken;
  ctx.fillRect(left, 2, right - left, height);
  const strip_height = height / Math.max(1, strips.length);
  ctx.drawImage(busyPicture(strips, inks, Math.round(right - left), height), left, 2, right - left, height);
  ctx.fillStyle = inks.ink_soft;
  if (strip_height < 11) ctx.fillText(fit.fit(`${strips.length} strips, as below`, left - 8), 4, OVERVIEW / 2);
  strips.forEach(({ title }, k) => {
    if (strip_height < 11) return;
    ctx.fillText(fit.fit(visible(title), left - 8), 4, 2 + (k + 0.5) * strip_height);
  });
  if (marks !== null) {
    ctx.fillStyle = inks.bad;
    const step = (right - left) / marks.length;
    marks.forEach((mark, i) => mark === 1 && ctx.fillRect(left + i * step, 0, Math.max(1, step), 4));
  }
  // What is out of view is dimmed, what is in view has a frame that is wide enough to be seen and held.
  const x0 = at(view.a, whole, left, right);
  const x1 = Math.max(x0 + 3, at(view.b, whole, left, right));
  ctx.globalAlpha = 0.6;
  ctx.fillStyle = inks.ground;
  ctx.fillRect(left, 2, x0 - left, height);
  ctx.fillRect(x1, 2, right - x1, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = inks.accent;
  ctx.lineWidth = 2;
  ctx.strokeRect(x0, 2, x1 - x0, height);
}

/** The strips as a picture, drawn once: they are thousands of bars, and the same in every frame. */
const pictures = new WeakMap<Strip[], { inks: Inks; picture: HTMLCanvasElement }>();

function busyPicture(strips: Strip[], inks: Inks, width: number, height: number): HTMLCanvasElement {
  const known = pictures.get(strips);
  if (known !== undefined && known.inks === inks && known.picture.width === 2 * width) return known.picture;
  const picture = document.createElement("canvas");
  // Two device pixels a pixel, whatever the screen has: bars are a pixel wide and more.
  picture.width = 2 * width;
  picture.height = 2 * height;
  const ctx = picture.getContext("2d");
  if (ctx !== null) {
    ctx.scale(2, 2);
    ctx.fillStyle = inks.fills[FILL.ops]!.colour;
    const strip_height = height / Math.max(1, strips.length);
    strips.forEach(({ busy }, k) => {
      const step = width / busy.length;
      for (let i = 0; i < busy.length; i++) {
        const h = busy[i]! * (strip_height - 1);
        // Little work is still some.
        if (h > 0) ctx.fillRect(i * step, (k + 1) * strip_height - Math.max(1, h), Math.max(step, 0.5), Math.max(1, h));
      }
    });
  }
  pictures.set(strips, { inks, picture });
  return picture;
}

function drawRuler(ctx: CanvasRenderingContext2D, inks: Inks, { left, right, whole, view, range, cursor }: Head): void {
  const top = OVERVIEW;
  const marks = ticks(view.a, view.b, right - left, 90, whole.a);
  ctx.fillStyle = inks.ink_soft;
  ctx.fillText(`${duration(view.b - view.a)}`, 4, top + RULER / 2);
  for (const t of marks.at) {
    const x = Math.round(at(t, view, left, right));
    ctx.fillStyle = inks.line_strong;
    ctx.fillRect(x, top + 12, 1, RULER - 12);
    const text = marks.label(t);
    ctx.fillStyle = inks.ink_soft;
    // The last label gives way to the edge.
    const wide = ctx.measureText(text).width;
    if (x + 3 + wide <= right + 8) ctx.fillText(text, x + 3, top + 8);
  }
  if (range !== null) {
    const x0 = Math.max(left, at(range.a, view, left, right));
    const x1 = Math.min(right, at(range.b, view, left, right));
    if (x1 >= left && x0 <= right) {
      ctx.fillStyle = inks.accent;
      ctx.fillRect(x0, top + RULER - 5, Math.max(1, x1 - x0), 4);
    }
  }
  if (cursor !== null && cursor >= view.a && cursor <= view.b) {
    ctx.fillStyle = inks.focus;
    ctx.fillRect(Math.round(at(cursor, view, left, right)), top, 1, RULER);
  }
}
