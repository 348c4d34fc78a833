/**
 * Rectangles and texts, collected and drawn colour by colour: changing a canvas's colour for each of thousands of rectangles costs
 * more than drawing them.
 */

import type { Inks } from "./ink";
import { TextFit } from "./names";

export const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/** How wide texts are on `ctx`. Its font is set each time, for a canvas forgets it whenever its size changes. */
export function fitOn(ctx: CanvasRenderingContext2D): TextFit {
  return new TextFit((text) => {
    ctx.font = FONT;
    return ctx.measureText(text).width;
  });
}

interface Text {
  text: string;
  x: number;
  y: number;
}

export class Brush {
  private readonly rects: number[][];
  private readonly patterned: number[][];
  private readonly hatched: number[] = [];
  private readonly marks: number[] = [];
  private readonly plates: number[] = [];
  private readonly notes: Text[] = [];
  private readonly texts = new Map<string, Text[]>();
  private textsLeft = 0;

  constructor(
    readonly ctx: CanvasRenderingContext2D,
    readonly inks: Inks,
    readonly fit: TextFit,
    /** Device pixels of a CSS pixel; edges are put on whole ones. */
    readonly ratio: number,
  ) {
    this.rects = inks.fills.map(() => []);
    this.patterned = inks.fills.map(() => []);
  }

  /** Texts beyond `texts` are left out of this picture: no eye reads so many, and they cost most. */
  begin(texts: number): void {
    this.textsLeft = texts;
  }

  snap(x: number): number {
    return Math.round(x * this.ratio) / this.ratio;
  }

  /** The first `calm` pixels bear no pattern: text is to stand there. */
  rect(fill: number, x: number, y: number, w: number, h: number, calm = 0): void {
    const rects = this.rects[fill]!;
    const last = rects.length - 4;
    // Slivers that touch are one rectangle.
    if (last >= 0 && w < 4 && rects[last + 1] === y && rects[last + 3] === h && x >= rects[last]! && x <= rects[last]! + rects[last + 2]!) {
      rects[last + 2] = Math.max(rects[last + 2]!, x + w - rects[last]!);
    } else rects.push(x, y, w, h);
    // Patterns tell colours apart; on a sliver they are but noise.
    if (w - calm >= 5 && this.inks.fills[fill]!.pattern !== null) this.patterned[fill]!.push(x + calm, y, w - calm, h);
  }

  hatch(x: number, y: number, w: number, h: number): void {
    this.hatched.push(x, y, w, h);
  }

  /** A line under what a search found. */
  mark(x: number, y: number, w: number, h: number): void {
    this.marks.push(x, y, w, h);
  }

  /** A note on calm ground, over all else. */
  note(text: string, x: number, y: number, h: number): void {
    this.plates.push(x, y, this.fit.width(text) + 8, h);
    this.notes.push({ text, x: x + 4, y: y + h / 2 + 0.5 });
  }

  /** Writes `text` from `x` on, cut to `most` pixels, its middle at `y`. Answers how wide it came out. */
  text(text: string, x: number, y: number, most: number, colour: string): number {
    if (this.textsLeft <= 0 || most < 10) return 0;
    const fitting = this.fit.fit(text, most);
    if (fitting === "") return 0;
    this.textsLeft -= 1;
    let list = this.texts.get(colour);
    if (list === undefined) this.texts.set(colour, (list = []));
    list.push({ text: fitting, x, y });
    return this.fit.width(fitting);
  }

  flush(): void {
    const { ctx, inks } = this;
    inks.fills.forEach((fill, i) => {
      this.drain(this.rects[i]!, fill.colour);
      if (fill.pattern !== null) this.drain(this.patterned[i]!, fill.pattern);
    });
    if (inks.hatch !== null) this.drain(this.hatched, inks.hatch);
    this.drain(this.marks, inks.ink);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const [colour, list] of this.texts) this.write(list, colour);
    this.drain(this.plates, inks.ground);
    this.write(this.notes, inks.ink);
  }

  private write(list: Text[], colour: string): void {
    this.ctx.fillStyle = colour;
    for (const { text, x, y } of list) this.ctx.fillText(text, x, y);
    list.length = 0;
  }

  private drain(rects: number[], style: string | CanvasPattern): void {
    if (rects.length === 0) return;
    const { ctx } = this;
    ctx.fillStyle = style;
    for (let i = 0; i < rects.length; i += 4) ctx.fillRect(rects[i]!, rects[i + 1]!, rects[i + 2]!, rects[i + 3]!);
    rects.length = 0;
  }
}
