/** Queue depth and memory over time, under the same times as the timeline. */

import "./canvas.css";
import type { Curve, Report } from "../data";
import { unpack } from "../decode";
import { colour } from "../palette";
import { h, setText, visible } from "../text";
import { FONT } from "./brush";
import { columnsOf, extremes, peakOf, upperBound, valueAt, type Points } from "./curve_points";
import { Frames, Surface } from "./surface";
import { exact, grouped, niceStep, size, ticks } from "./time";
import { panBy, zoomAt, type View } from "./view";
import { gutterOf, RIGHT, sharedWindow, type SharedWindow } from "./window";

/** Heights in CSS pixels: of a plot, of its title, of the axis under the last one. */
const PLOT = 96;
const TITLE = 22;
const AXIS = 22;

interface Line {
  curve: Curve;
  points: Points;
  peak: number;
}

/** Curves that share a plot: of one device and unit. */
interface Plot {
  title: string;
  unit: Curve["unit"];
  lines: Line[];
}

/** Mounts the curves (queue depth, memory) into `el`. */
export function mountCurves(el: HTMLElement, report: Report, bytes: Uint8Array): { redraw(): void } {
  try {
    const plots = plotsOf(report.curves, bytes);
    if (plots.length > 0) {
      const view = new CurvesView(el, plots, wholeOf(report, plots), sharedWindow(report));
      return { redraw: () => view.draw() };
    }
    el.hidden = true;
  } catch (error) {
    el.replaceChildren(h("p", { class: "lp-broken", role: "alert" }, `The curves cannot be shown: ${String(error)}`));
  }
  return { redraw() {} };
}

function plotsOf(curves: Curve[], bytes: Uint8Array): Plot[] {
  const plots = new Map<string, Plot>();
  for (const curve of curves) {
    const t = unpack(bytes, curve.t);
    const v = unpack(bytes, curve.v);
    const n = Math.min(t.length, v.length);
    if (n === 0) continue;
    const points = { t: t.subarray(0, n), v: v.subarray(0, n) };
    const line = { curve, points, peak: peakOf(points) };
    const key = `${curve.unit} ${String(curve.device)}`;
    const plot = plots.get(key);
    if (plot === undefined) plots.set(key, { title: curve.title, unit: curve.unit, lines: [line] });
    else plot.lines.push(line);
  }
  for (const plot of plots.values()) {
    // The device is said once.
    const rest = plot.lines.slice(1).map(({ curve }) => `${curve.title.split(" \u00b7 ").at(-1) ?? ""} (dashed)`);
    plot.title = [plot.title, ...rest].join(", ");
  }
  return [...plots.values()];
}

function wholeOf({ timeline }: Report, plots: Plot[]): View {
  if (timeline !== null) return { a: timeline.start_ns, b: Math.max(timeline.end_ns, timeline.start_ns + 1) };
  const all = plots.flatMap(({ lines }) => lines.map(({ points }) => points.t));
  const a = Math.min(...all.map((t) => t[0]!));
  return { a, b: Math.max(a + 1, ...all.map((t) => t[t.length - 1]!)) };
}

function amount(value: number, unit: Curve["unit"]): string {
  return unit === "bytes" ? size(value) : grouped(value);
}

class CurvesView {
  private readonly surface: Surface;
  private readonly frames = new Frames(() => this.draw());
  private readonly box: HTMLElement;
  private readonly readout = h("p", { class: "lp-readout" });
  private readonly live = h("p", { class: "lp-live", "aria-live": "polite" });
  private readonly root: HTMLElement;
  private view: View;
  private cursor: number | null = null;

  constructor(
    el: HTMLElement,
    private readonly plots: Plot[],
    private readonly whole: View,
    private readonly shared: SharedWindow,
  ) {
    this.view = shared.view ?? whole;
    const canvas = h("canvas", { tabindex: "0", role: "application", "aria-label": `Curves over time: ${plots.map(({ title }) => title).join("; ")}` });
    this.surface = new Surface(canvas);
    this.box = h("div", { class: "lp-box" }, canvas);
    const peaks = plots.flatMap(({ lines, unit }) =>
      lines.map(({ curve, points, peak }) => h("li", {}, `${curve.title}: peak ${amount(points.v[peak]!, unit)} at ${exact(points.t[peak]! - whole.a)} `, h("button", { type: "button", click: () => this.go(points.t[peak]!) }, "show"))),
    );
    this.root = h(
      "div",
      { class: "lp-view lp-curves" },
      this.box,
      this.readout,
      h("div", { class: "lp-panel" }, h("ul", { class: "lp-launched" }, peaks)),
      h("p", { class: "lp-hint" }, "Same times as the timeline. Point at a time, or focus the curves: left and right go from change to change, up to the peak, + and \u2212 zoom, Home shows the whole window."),
      this.live,
    );
    el.hidden = false;
    el.replaceChildren(this.root);
    this.listen(canvas);
    shared.listen((view) => {
      this.view = view;
      this.frames.ask();
    });
    new ResizeObserver(() => this.frames.ask()).observe(this.box);
    this.frames.ask();
  }

  private listen(canvas: HTMLCanvasElement): void {
    canvas.addEventListener("pointermove", (event) => {
      const { left, right } = this.edges();
      const x = event.clientX - canvas.getBoundingClientRect().left;
      this.point(x < left || x > right ? null : this.view.a + ((x - left) / (right - left)) * (this.view.b - this.view.a), false);
    });
    canvas.addEventListener("pointerleave", () => this.point(null, false));
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const middle = this.cursor ?? (this.view.a + this.view.b) / 2;
      const actions: Record<string, () => void> = {
        ArrowLeft: () => this.stepPoint(-1),
        ArrowRight: () => this.stepPoint(1),
        ArrowUp: () => this.go(this.plots[0]!.lines[0]!.points.t[this.plots[0]!.lines[0]!.peak]!),
        "+": () => this.setView(zoomAt(this.view, 1 / 1.5, middle, this.whole)),
        "=": () => this.setView(zoomAt(this.view, 1 / 1.5, middle, this.whole)),
        "-": () => this.setView(zoomAt(this.view, 1.5, middle, this.whole)),
        Home: () => this.setView(this.whole),
      };
      if (!Object.hasOwn(actions, event.key)) return;
      event.preventDefault();
      actions[event.key]!();
    });
  }

  private edges(): { left: number; right: number } {
    return { left: gutterOf(this.surface.width), right: this.surface.width - RIGHT };
  }

  private setView(view: View): void {
    this.view = view;
    this.shared.set(view, this);
    this.frames.ask();
  }

  /** Puts the cursor at a time, and the view where it is seen. */
  private go(t: number): void {
    if (t < this.view.a || t > this.view.b) this.setView(panBy(this.view, t - (this.view.a + this.view.b) / 2, this.whole));
    this.point(t, true);
  }

  /** To the next change of any curve; a pixel at least, so that a dense curve can be walked over. */
  private stepPoint(step: 1 | -1): void {
    const from = this.cursor ?? (step === 1 ? this.view.a : this.view.b);
    const { left, right } = this.edges();
    const least = (this.view.b - this.view.a) / Math.max(1, right - left);
    const times = this.plots.flatMap(({ lines }) =>
      lines.flatMap(({ points: { t } }) => {
        const at = step === 1 ? upperBound(t, from + least) : upperBound(t, from - least) - 1;
        return t[at] === undefined ? [] : [t[at]];
      }),
    );
    if (times.length > 0) this.go(step === 1 ? Math.min(...times) : Math.max(...times));
  }

  private point(t: number | null, say: boolean): void {
    this.cursor = t;
    const words = t === null ? "" : this.words(t);
    setText(this.readout, words);
    if (say) setText(this.live, words);
    this.frames.ask();
  }

  private words(t: number): string {
    const values = this.plots.flatMap(({ lines, unit }) =>
      lines.map(({ curve, points }) => {
        const value = valueAt(points, t);
        return `${curve.title} ${value === null ? "not recorded yet" : amount(value, unit)}`;
      }),
    );
    return [exact(Math.round(t - this.whole.a)), ...values].join(" \u00b7 ");
  }

  draw(): void {
    const width = this.box.clientWidth;
    if (width < 40) return;
    this.surface.resize(width, this.plots.length * (TITLE + PLOT) + AXIS);
    const { ctx } = this.surface;
    ctx.fillStyle = colour("--ground");
    ctx.fillRect(0, 0, width, this.surface.height);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    this.plots.forEach((plot, k) => this.drawPlot(plot, k * (TITLE + PLOT)));
    const { left, right } = this.edges();
    const marks = ticks(this.view.a, this.view.b, right - left, 90, this.whole.a);
    const bottom = this.plots.length * (TITLE + PLOT);
    for (const t of marks.at) {
      const x = Math.round(left + ((t - this.view.a) / (this.view.b - this.view.a)) * (right - left));
      const text = marks.label(t);
      ctx.fillStyle = colour("--ink-soft");
      ctx.fillRect(x, bottom, 1, 5);
      if (x + 3 + ctx.measureText(text).width <= right + RIGHT) ctx.fillText(text, x + 3, bottom + 12);
    }
    if (this.cursor !== null && this.cursor >= this.view.a && this.cursor <= this.view.b) {
      ctx.fillStyle = colour("--focus");
      ctx.fillRect(Math.round(left + ((this.cursor - this.view.a) / (this.view.b - this.view.a)) * (right - left)), 0, 1, bottom);
    }
    this.root.dataset["viewStart"] = String(Math.round(this.view.a));
    this.root.dataset["viewEnd"] = String(Math.round(this.view.b));
  }

  private drawPlot({ title, unit, lines }: Plot, top: number): void {
    const { ctx } = this.surface;
    const { left, right } = this.edges();
    const { a, b } = this.view;
    ctx.fillStyle = colour("--raised");
    ctx.fillRect(0, top, this.surface.width, TITLE);
    ctx.fillStyle = colour("--ink");
    ctx.fillText(visible(title), 6, top + TITLE / 2);
    const seen = lines.map(({ points }) => extremes(points, a, b));
    const most = Math.max(1, ...seen.map((pair) => pair?.[1] ?? 0));
    // From zero, so that heights can be compared.
    const bottom = top + TITLE + PLOT - 4;
    const height = PLOT - 12;
    const y = (value: number) => bottom - (value / most) * height;
    this.drawScale(most, unit, left, right, y);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top + TITLE, right - left, PLOT);
    ctx.clip();
    lines.forEach((line, k) => this.drawLine(line, left, right, bottom, y, k > 0));
    ctx.restore();
  }

  private drawScale(most: number, unit: Curve["unit"], left: number, right: number, y: (value: number) => number): void {
    const { ctx } = this.surface;
    // Steps of bytes are powers of two, which is what their units are.
    const step = unit === "bytes" ? 2 ** Math.max(0, Math.floor(Math.log2(most / 2))) : niceStep(most / 4);
    for (let value = 0; value <= most && step > 0; value += step) {
      ctx.fillStyle = colour("--line");
      ctx.fillRect(left, Math.round(y(value)), right - left, 1);
      const text = amount(value, unit);
      ctx.fillStyle = colour("--ink-soft");
      ctx.fillText(text, left - 6 - ctx.measureText(text).width, y(value) - (value === 0 ? 3 : 0));
    }
  }

  private drawLine({ points, peak }: Line, left: number, right: number, bottom: number, y: (value: number) => number, dashed: boolean): void {
    const { ctx } = this.surface;
    const { a, b } = this.view;
    const columns = columnsOf(points, a, b, right - left);
    if (columns.length === 0) return;
    // A curve that moves in every pixel would be one dark mass: its extremes are drawn as a band.
    const is_dense = columns.length > (right - left) / 3;
    const path = () => {
      ctx.beginPath();
      ctx.moveTo(left + columns[0]!.x, y(columns[0]!.first));
      for (const { x, first, least, most, last } of columns) {
        if (!is_dense) ctx.lineTo(left + x, y(first));
        ctx.lineTo(left + x, y(most));
        if (is_dense) continue;
        if (least < first && least < last) ctx.lineTo(left + x, y(least));
        ctx.lineTo(left + x, y(last));
      }
      ctx.lineTo(right, y(columns[columns.length - 1]!.last));
    };
    if (!dashed) {
      path();
      ctx.lineTo(right, bottom);
      ctx.lineTo(left + columns[0]!.x, bottom);
      ctx.fillStyle = colour("--accent");
      ctx.globalAlpha = 0.18;
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    if (is_dense) {
      ctx.fillStyle = colour(dashed ? "--ink-soft" : "--accent");
      ctx.globalAlpha = 0.3;
      for (const { x, least, most } of columns) ctx.fillRect(left + x, y(most), 1, Math.max(1, y(least) - y(most)));
      ctx.globalAlpha = 1;
    }
    path();
    ctx.strokeStyle = colour(dashed ? "--ink-soft" : "--accent");
    ctx.lineWidth = 1.25;
    ctx.setLineDash(dashed ? [5, 3] : []);
    ctx.stroke();
    ctx.setLineDash([]);
    const at = points.t[peak]!;
    if (at < a || at > b) return;
    const x = left + ((at - a) / (b - a)) * (right - left);
    // A triangle that stands on the peak, and falls to its side where the edge is near.
    ctx.fillStyle = colour("--bad");
    ctx.beginPath();
    ctx.moveTo(x, y(points.v[peak]!));
    ctx.lineTo(x - 4, y(points.v[peak]!) - 7);
    ctx.lineTo(x + 4, y(points.v[peak]!) - 7);
    ctx.fill();
  }
}
