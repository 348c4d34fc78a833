/** The icicle: where host and device time went, from ranges through operators to kernels. */

import "./canvas.css";
import type { Icicle, Report } from "../data";
import { colour, familyLook } from "../palette";
import { h, setText, shorten, visible } from "../text";
import { fitOn, FONT } from "./brush";
import { cellsOf, childrenOf, layoutTree, makeTree, pathTo, step, type Cell, type Edges, type Measure, type Tree } from "./icicle_layout";
import { readableOn } from "./ink";
import { knownShortNames, shortName, type TextFit } from "./names";
import { Frames, Surface } from "./surface";
import { counted, duration, grouped, percent } from "./time";

/** Height of a row, and most rows drawn, in CSS pixels. */
const ROW = 22;
const MOST_ROWS = 40;

/** Mounts the icicle of ranges, operators and kernels into `el`. */
export function mountIcicle(el: HTMLElement, report: Report): { redraw(): void } {
  const { icicle } = report;
  if (icicle === null || icicle.parent.length === 0) {
    el.hidden = true;
    return { redraw() {} };
  }
  const families = new Map<string, string>();
  report.timeline?.names.forEach((name, i) => {
    const family = report.timeline!.families[report.timeline!.name_family[i] ?? -1];
    if (family !== undefined) families.set(name, family);
  });
  const view = new IcicleView(el, icicle, families, knownShortNames(report));
  return { redraw: () => view.redraw() };
}

class IcicleView {
  private readonly tree: Tree;
  private readonly edges: Record<Measure, Edges>;
  private readonly surface: Surface;
  private readonly frames = new Frames(() => this.draw());
  private readonly fit: TextFit;
  private readonly box: HTMLElement;
  private readonly crumbs = h("ol", { class: "lp-crumbs", "aria-label": "Path from the root" });
  private readonly readout = h("p", { class: "lp-readout" });
  private readonly live = h("p", { class: "lp-live", "aria-live": "polite" });
  private readonly count = h("output", { class: "lp-count" });
  private readonly buttons: Record<Measure, HTMLButtonElement>;
  private readonly root: HTMLElement;
  private readonly labels: (string | undefined)[] = [];
  private measure: Measure;
  private zoomed = 0;
  private chosen = 0;
  private hover: number | null = null;
  private found: Uint8Array | null = null;
  private cells: Cell[] = [];

  constructor(
    el: HTMLElement,
    private readonly icicle: Icicle,
    private readonly families: Map<string, string>,
    private readonly known: Map<string, string>,
  ) {
    this.tree = makeTree(icicle);
    this.edges = { host: layoutTree(this.tree, "host"), device: layoutTree(this.tree, "device") };
    this.measure = this.edges.device.right[0]! > 0 ? "device" : "host";
    const canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": "Icicle of ranges, operators and kernels. Arrow keys walk over it, Enter zooms, Backspace goes back.",
    });
    this.surface = new Surface(canvas);
    this.fit = fitOn(this.surface.ctx);
    const measureButton = (measure: Measure, words: string) => h("button", { type: "button", click: () => this.setMeasure(measure) }, words);
    this.buttons = { device: measureButton("device", "device time"), host: measureButton("host", "host time") };
    const input = h("input", { type: "search", placeholder: "find by name", "aria-label": "Find nodes of the icicle by name", spellcheck: "false" });
    input.addEventListener("input", () => this.search(input.value));
    this.box = h("div", { class: "lp-box lp-icicle-box" }, canvas);
    this.root = h(
      "div",
      { class: "lp-view lp-icicle" },
      h("div", { class: "lp-bar", role: "group", "aria-label": "Icicle controls" }, this.buttons.device, this.buttons.host, input, this.count),
      this.crumbs,
      this.box,
      this.readout,
      h("p", { class: "lp-hint" }, "Click or Enter zooms into a node, Backspace or the path above goes back. Arrow keys walk: down to the largest part, up, and aside."),
      this.live,
    );
    el.hidden = false;
    el.replaceChildren(this.root);
    this.listen(canvas);
    new ResizeObserver(() => this.frames.ask()).observe(this.box);
    this.changed(null);
  }

  redraw(): void {
    this.draw();
  }

  private get now(): Edges {
    return this.edges[this.measure];
  }

  private listen(canvas: HTMLCanvasElement): void {
    const cellAt = (event: MouseEvent): number | null => {
      const box = canvas.getBoundingClientRect();
      const x = event.clientX - box.left;
      const depth = Math.floor((event.clientY - box.top) / ROW);
      const offset = this.tree.depth[this.zoomed]!;
      // Above the zoomed node stand its parents, each in full width.
      if (depth < offset) return pathTo(this.tree, this.zoomed)[depth] ?? null;
      return this.cells.find((cell) => cell.depth + offset === depth && x >= cell.x0 && x < Math.max(cell.x1, cell.x0 + 2))?.node ?? null;
    };
    canvas.addEventListener("click", (event) => {
      const node = cellAt(event);
      if (node === null) return;
      this.chosen = node;
      this.zoom(node);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.hover = cellAt(event);
      setText(this.readout, this.line(this.hover ?? this.chosen));
      this.frames.ask();
    });
    canvas.addEventListener("pointerleave", () => {
      this.hover = null;
      setText(this.readout, this.line(this.chosen));
      this.frames.ask();
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const arrows: Record<string, "up" | "down" | "left" | "right"> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
      const arrow = arrows[event.key];
      if (arrow !== undefined) this.walk(step(this.tree, this.now, 0, this.chosen, arrow));
      else if (event.key === "Enter") this.zoom(this.chosen);
      else if (event.key === "Backspace" || event.key === "Escape") this.back();
      else if (event.key === "Home") this.zoom(0);
      else return;
      event.preventDefault();
    });
    canvas.addEventListener("focus", () => this.frames.ask());
    canvas.addEventListener("blur", () => this.frames.ask());
  }

  private walk(node: number): void {
    this.chosen = node;
    // What is walked to must be seen: out of the zoomed node's part the zoom follows.
    while (this.zoomed > 0 && !(node >= this.zoomed && node < this.tree.last[this.zoomed]!)) this.zoomed = this.tree.parent[this.zoomed]!;
    this.changed(this.spoken(node));
  }

  private zoom(node: number): void {
    this.zoomed = node;
    this.chosen = node;
    this.changed(`zoomed to ${this.spoken(node)}`);
  }

  private back(): void {
    const above = this.tree.parent[this.zoomed]!;
    if (above >= 0) this.zoom(above);
  }

  private setMeasure(measure: Measure): void {
    this.measure = measure;
    // What has no time of this kind cannot fill the picture.
    while (this.zoomed > 0 && this.now.right[this.zoomed]! <= this.now.left[this.zoomed]!) this.zoomed = this.tree.parent[this.zoomed]!;
    if (this.now.right[this.chosen]! <= this.now.left[this.chosen]!) this.chosen = this.zoomed;
    this.changed(`${measure} time`);
  }

  private search(text: string): void {
    const wanted = text.trim().toLowerCase();
    this.found = wanted === "" ? null : Uint8Array.from(this.icicle.name.slice(0, this.tree.n), (name) => (name.toLowerCase().includes(wanted) ? 1 : 0));
    setText(this.count, this.found === null ? "" : counted(this.found.reduce((sum, one) => sum + one, 0), "node"));
    this.frames.ask();
  }

  private changed(say: string | null): void {
    for (const measure of ["device", "host"] as const) this.buttons[measure].setAttribute("aria-pressed", String(this.measure === measure));
    const path = pathTo(this.tree, this.zoomed);
    this.crumbs.replaceChildren(
      ...path.map((node, k) => {
        const name = shorten(this.icicle.name[node]!, 60);
        const at = k === path.length - 1;
        return h("li", {}, k > 0 && "\u203a ", at ? h("span", { "aria-current": "true" }, name) : h("button", { type: "button", click: () => this.zoom(node) }, name));
      }),
    );
    this.crumbs.hidden = path.length < 2;
    setText(this.readout, this.line(this.chosen));
    if (say !== null) setText(this.live, say);
    this.root.dataset["selectedName"] = visible(this.icicle.name[this.chosen]!);
    this.frames.ask();
  }

  /** A node's times and shares. */
  private words(node: number): string {
    const { tree, icicle } = this;
    const own = this.measure === "host" ? tree.host : tree.device;
    const share = (of: number) => (own[of]! > 0 && own[node]! >= 0 ? percent(own[node]! / own[of]!) : null);
    const host = Number.isNaN(tree.host[node]!) ? null : `host ${duration(tree.host[node]!)}`;
    const parts = [
      `device ${duration(tree.device[node]!)}`,
      host,
      share(0) === null ? null : `${share(0)} of all ${this.measure} time`,
      tree.parent[node]! > 0 && share(tree.parent[node]!) !== null ? `${share(tree.parent[node]!)} of its parent` : null,
      counted(icicle.calls[node]!, "call"),
      `${grouped(childrenOf(tree, this.now, node).length)} parts`,
    ];
    return parts.filter((part) => part !== null).join(" \u00b7 ");
  }

  /** For the line under the picture: figures first, for it may be too narrow for the name. */
  private line(node: number): string {
    return `${this.words(node)} \u00b7 ${this.titled(node)}`;
  }

  /** For those who hear it: the name first. */
  private spoken(node: number): string {
    return `${this.titled(node)} \u00b7 ${this.words(node)}`;
  }

  private titled(node: number): string {
    return `${this.icicle.kind[node]!} ${shorten(this.icicle.name[node]!, 160)}`;
  }

  private label(node: number): string {
    const name = this.icicle.name[node]!;
    return (this.labels[node] ??= this.icicle.kind[node] === "kernel" ? (this.known.get(name) ?? shortName(name)) : visible(name));
  }

  private look(node: number): { fill: string; glyph: string } {
    const kind = this.icicle.kind[node]!;
    if (kind === "kernel") {
      const { token, glyph } = familyLook(this.families.get(this.icicle.name[node]!) ?? "other");
      return { fill: colour(token), glyph };
    }
    const token = { root: "--sunken", range: "--accent-ground", op: "--bar", call: "--line-strong", rest: "--line" }[kind];
    return { fill: colour(token), glyph: "" };
  }

  private draw(): void {
    const width = this.box.clientWidth;
    if (width < 40) return;
    const { tree, surface } = this;
    this.cells = cellsOf(tree, this.now, this.zoomed, width, 1);
    const offset = tree.depth[this.zoomed]!;
    const rows = Math.min(MOST_ROWS, 1 + offset + this.cells.reduce((most, { depth }) => Math.max(most, depth), 0));
    // The picture grows with what is shown, but does not jump to and fro while zooming.
    surface.resize(width, Math.max(rows * ROW, surface.height > 1 && this.zoomed > 0 ? surface.height : 0));
    const { ctx } = surface;
    const ground = colour("--ground");
    ctx.fillStyle = ground;
    ctx.fillRect(0, 0, width, surface.height);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    const looks = new Map<string, { fill: string; text: string; glyph: string }>();
    const lookOf = (node: number) => {
      const key = this.icicle.kind[node] === "kernel" ? `k${this.families.get(this.icicle.name[node]!) ?? ""}` : this.icicle.kind[node]!;
      let found = looks.get(key);
      if (found === undefined) {
        const { fill, glyph } = this.look(node);
        looks.set(key, (found = { fill, glyph, text: readableOn(fill) }));
      }
      return found;
    };
    const above: Cell[] = pathTo(tree, this.zoomed).slice(0, -1).map((node, k) => ({ node, x0: 0, x1: width, depth: k - offset, merged: false }));
    for (const cell of [...above, ...this.cells]) {
      const row = cell.depth + offset;
      if (row >= MOST_ROWS) continue;
      this.drawCell(cell, row * ROW, lookOf(cell.node), row < offset);
    }
    if (document.activeElement === surface.canvas || this.chosen !== this.zoomed) this.frame(this.chosen, colour("--ink"), 2);
    if (this.hover !== null) this.frame(this.hover, colour("--ink-soft"), 1);
  }

  private drawCell({ node, x0, x1, merged }: Cell, y: number, look: { fill: string; text: string; glyph: string }, faded: boolean): void {
    const { ctx } = this.surface;
    const hit = this.found === null || this.found[node] === 1;
    const w = Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0));
    ctx.fillStyle = merged ? colour("--line-strong") : hit ? look.fill : colour("--sunken");
    ctx.globalAlpha = faded ? 0.55 : 1;
    ctx.fillRect(x0, y, w, ROW - 1);
    ctx.globalAlpha = 1;
    if (this.found !== null && hit && !merged) {
      ctx.fillStyle = colour("--ink");
      ctx.fillRect(x0, y + ROW - 4, w, 3);
    }
    if (w < 24) return;
    const text = this.fit.fit(`${look.glyph === "" ? "" : `${look.glyph} `}${this.label(node)}`, w - 8);
    ctx.fillStyle = faded ? colour("--ink") : hit ? look.text : colour("--ink-faint");
    ctx.fillText(text, x0 + 4, y + ROW / 2);
    const own = this.measure === "host" ? this.tree.host : this.tree.device;
    const share = own[0]! > 0 && own[node]! >= 0 ? `${duration(own[node]!)} \u00b7 ${percent(own[node]! / own[0]!)}` : "";
    const wide = this.fit.width(share);
    if (share !== "" && this.fit.width(text) + wide + 24 < w) ctx.fillText(share, x0 + w - 4 - wide, y + ROW / 2);
  }

  private frame(node: number, ink: string, wide: number): void {
    const offset = this.tree.depth[this.zoomed]!;
    const inside = node >= this.zoomed && node < this.tree.last[this.zoomed]!;
    const scale = this.surface.width / Math.max(Number.MIN_VALUE, this.now.right[this.zoomed]! - this.now.left[this.zoomed]!);
    const x0 = inside ? (this.now.left[node]! - this.now.left[this.zoomed]!) * scale : 0;
    const x1 = inside ? (this.now.right[node]! - this.now.left[this.zoomed]!) * scale : this.surface.width;
    const y = (inside ? this.tree.depth[node]! : Math.min(offset, this.tree.depth[node]!)) * ROW;
    const { ctx } = this.surface;
    ctx.strokeStyle = ink;
    ctx.lineWidth = wide;
    ctx.strokeRect(x0 + 1, y + 1, Math.max(2, x1 - x0 - 3), ROW - 3);
  }
}
