/** A canvas that keeps the size of its box and the screen's pixels, and draws at most once a frame. */

export class Surface {
  readonly ctx: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  ratio = 1;

  constructor(readonly canvas: HTMLCanvasElement) {
    // What is drawn covers all, so the page need not be blended under it.
    const ctx = canvas.getContext("2d", { alpha: false });
    if (ctx === null) throw new Error("this browser draws no canvas");
    this.ctx = ctx;
  }

  /** Sets the size in CSS pixels. Answers whether the canvas was cleared for it. */
  resize(width: number, height: number): boolean {
    // More than three device pixels a pixel only cost time.
    const ratio = Math.min(3, Math.max(1, globalThis.devicePixelRatio || 1));
    const w = Math.max(1, Math.round(width * ratio));
    const h = Math.max(1, Math.round(height * ratio));
    const changed = this.canvas.width !== w || this.canvas.height !== h;
    if (changed) {
      this.canvas.width = w;
      this.canvas.height = h;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    return changed;
  }
}

/** Calls `draw` in the next frame, once, however often it was asked to. */
export class Frames {
  private asked = false;

  constructor(private readonly draw: (now: number) => void) {}

  ask(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      this.draw(now);
    });
  }
}

/** Whether the reader asked for little motion. */
export function calm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
