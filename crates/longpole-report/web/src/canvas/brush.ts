/**
 * Rectangles and texts, collected and drawn colour by colour: changing a canvas's colour for each of thousands of rectangles costs
 * more than drawing them.
 */

import type { Inks } from "./ink";
import type { TextFit } from "./names";

export const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

export class Brush {
  private readonly rects: number[][];
  private readonly patterned: number[][];
  private readonly hatched: number[] = [];
  private readonly marks: number[] = [];
  private readonly plates: number[] = [];
  private readonly texts = new Map<string, { text: string; x: number; y: number }[]>();
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

  rect(fill: number, x: number, y: number, w: number, h: number): void {
    this.rects[fill]!.push(x, y, w, h);
    // Patterns tell colours apart; on a sliver they are but noise.
    if (w >= 5 && this.inks.fills[fill]!.pattern !== null) this.patterned[fill]!.push(x, y, w, h);
  }

  hatch(x: number, y: number, w: number, h: number): void {
    this.hatched.push(x, y, w, h);
  }

  /** A line under what a search found. */
  mark(x: number, y: number, w: number, h: number): void {
    this.marks.push(x, y, w, h);
  }

  /** Calm ground under a text that stands on drawn things. */
  plate(x: number, y: number, w: number, h: number): void {
    this.plates.push(x, y, w, h);
  }

  /** Writes `text` from `x` on, cut to `most` pixels, its middle at `y`. */
  text(text: string, x: number, y: number, most: number, colour: string): void {
    if (this.textsLeft <= 0 || most < 14) return;
    const fitting = this.fit.fit(text, most);
    if (fitting === "") return;
    this.textsLeft -= 1;
    let list = this.texts.get(colour);
    if (list === undefined) this.texts.set(colour, (list = []));
    list.push({ text: fitting, x, y });
  }

  flush(): void {
    const { ctx, inks } = this;
    inks.fills.forEach((fill, i) => {
      this.drain(this.rects[i]!, fill.colour);
      if (fill.pattern !== null) this.drain(this.patterned[i]!, fill.pattern);
    });
    if (inks.hatch !== null) this.drain(this.hatched, inks.hatch);
    this.drain(this.marks, inks.ink);
    this.drain(this.plates, inks.ground);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const [colour, list] of this.texts) {
      ctx.fillStyle = colour;
      for (const { text, x, y } of list) ctx.fillText(text, x, y);
      list.length = 0;
    }
  }

  private drain(rects: number[], style: string | CanvasPattern): void {
    if (rects.length === 0) return;
    const { ctx } = this;
    ctx.fillStyle = style;
    for (let i = 0; i < rects.length; i += 4) ctx.fillRect(rects[i]!, rects[i + 1]!, rects[i + 2]!, rects[i + 3]!);
    rects.length = 0;
  }
}
