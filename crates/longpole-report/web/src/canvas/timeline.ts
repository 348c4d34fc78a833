/** The timeline: lanes of host and device over time, from the whole window to single events. */

import "./canvas.css";
import type { Moment, Report } from "../data";
import { h, setText, shorten, visible } from "../text";
import { Brush, fitOn } from "./brush";
import { details, nameOf, sentence } from "./details";
import { drawBody } from "./draw_body";
import { drawHead, HEAD, OVERVIEW } from "./draw_head";
import type { Scene } from "./draw_lane";
import { foundColumns } from "./find";
import { causesOf, fillTable, firstCause, FIRST_FAMILY, readInks, type Inks } from "./ink";
import { listen, listenHead } from "./input";
import { hitLine, lineUnder, type Hit } from "./layout";
import { legend } from "./legend";
import { Model } from "./model";
import { knownShortNames, shortName, type TextFit } from "./names";
import { strips, type Strip } from "./overview";
import { TimelineState, type Change } from "./state";
import { calm, Frames, Surface } from "./surface";
import { counted, duration, exact } from "./time";
import { keptNote, keysDialog, searchBox, toolbar } from "./toolbar";
import { between, type View } from "./view";
import { gutterOf, RIGHT, sharedWindow } from "./window";

/** How long the way to another view takes, and a flash, in milliseconds. */
const MOVE_MS = 180;
const FLASH_MS = 1600;
/** How far beside an event a click still means it, in pixels. */
const SLACK_PX = 3;

/** How a timeline that is one of two differs. */
export interface Beside {
  /** The length of the longer one. */
  least_ns: number;
  /** What it is called, for those who do not see where it stands. */
  name: string;
  /** Whether what the mouse does is said above it already. */
  is_second: boolean;
}

/** Mounts the timeline into `el`. `show` goes to a moment; `redraw` draws again after the theme changed. */
export function mountTimeline(el: HTMLElement, report: Report, bytes: Uint8Array, beside?: Beside): { show(moment: Moment): void; redraw(): void } {
  if (report.timeline === null || report.timeline.lanes.length === 0) {
    el.hidden = true;
    return { show() {}, redraw() {} };
  }
  try {
    return new TimelineView(el, report, new Model(report.timeline, bytes, beside?.least_ns), beside);
  } catch (error) {
    el.replaceChildren(broken(error));
    return { show() {}, redraw() {} };
  }
}

function broken(error: unknown): HTMLElement {
  return h("p", { class: "lp-broken", role: "alert" }, `The timeline cannot be shown: ${String(error)}`);
}

class TimelineView {
  private readonly state: TimelineState;
  private readonly head = new Surface(h("canvas", { class: "lp-head", "aria-hidden": "true" }));
  private readonly body: Surface;
  private readonly root: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly inner: HTMLElement;
  private readonly live = h("p", { class: "lp-live", "aria-live": "polite" });
  private readonly readout = h("p", { class: "lp-readout" });
  private readonly panels = h("div", { class: "lp-panels" });
  private readonly legendBox = h("div");
  private readonly input = searchBox();
  private readonly keys: HTMLDialogElement;
  private readonly frames = new Frames((now) => this.draw(now));
  private readonly labels: (string | undefined)[] = [];
  private readonly known: Map<string, string>;
  private readonly causes: number[];
  private readonly fills: Scene["fills"];
  private readonly fit: TextFit;
  private readonly window;
  private inks: Inks;
  private brush: Brush;
  /** What the picture shows, on its way to `state.view`. */
  private shown: View;
  private move: { from: View; to: View; began: number } | null = null;
  private flashBegan: number | null = null;
  private hover: Hit | null = null;
  private cursor: number | null = null;
  private strips: { columns: number; made: Strip[] } | null = null;
  private marks: { of: unknown; columns: number; made: Uint8Array } | null = null;
  private toldPanel: string | null = null;

  constructor(
    el: HTMLElement,
    report: Report,
    private readonly model: Model,
    beside: Beside | undefined,
  ) {
    this.window = sharedWindow(report);
    this.known = knownShortNames(report);
    this.state = new TimelineState(model, (change) => this.changed(change));
    this.shown = this.state.view;
    const hint = h(
      "p",
      { class: "lp-hint", id: "lp-timeline-hint" },
      "Drag pans, Ctrl + wheel zooms at the pointer, Shift + wheel pans, a plain wheel scrolls. Shift + drag measures a range, a double click zooms to an event. With the keyboard: focus the lanes and press ? for the keys.",
    );
    const canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": `Timeline of lanes over time${beside === undefined ? "" : `, ${beside.name}`}`,
      "aria-describedby": hint.id,
    });
    this.body = new Surface(canvas);
    this.inner = h("div", {}, canvas);
    this.scroller = h("div", { class: "lp-scroller", scroll: () => this.frames.ask() }, this.inner);
    this.keys = keysDialog();
    this.root = h(
      "div",
      { class: "lp-view lp-timeline" },
      toolbar(this.state, this.input, () => this.keys.showModal()),
      keptNote(model.timeline),
      h("div", { class: "lp-box" }, this.head.canvas, this.scroller),
      this.readout,
      beside?.is_second === true ? null : hint,
      this.legendBox,
      this.panels,
      this.live,
      this.keys,
    );
    el.hidden = false;
    el.replaceChildren(this.root);
    this.causes = causesOf(model);
    this.fills = fillTable(model, this.causes);
    this.fit = fitOn(this.body.ctx);
    this.inks = this.readInks();
    this.brush = new Brush(this.body.ctx, this.inks, this.fit, 1);
    listen(this.state, {
      canvas,
      scroller: this.scroller,
      left: () => gutterOf(this.body.width),
      right: () => this.body.width - RIGHT,
      timeAt: (x) => this.timeAt(x),
      click: (x, y) => this.click(x, y),
      doubleClick: (x, y) => this.doubleClick(x, y),
      hover: (x, y) => this.hovered(x, y),
      keysList: () => this.keys.showModal(),
      search: () => this.input.focus(),
    });
    listenHead(this.state, this.head.canvas, () => gutterOf(this.body.width), () => this.body.width - RIGHT, OVERVIEW);
    canvas.addEventListener("focus", () => this.frames.ask());
    canvas.addEventListener("blur", () => this.frames.ask());
    this.window.listen((view, by) => by !== this && this.state.setView(view));
    new ResizeObserver(() => this.frames.ask()).observe(this.scroller);
    this.showLegend();
    this.changed({});
  }

  redraw(): void {
    this.inks = this.readInks();
    this.brush = new Brush(this.body.ctx, this.inks, this.fit, this.body.ratio);
    this.showLegend();
    // At once, for a page that is about to be printed draws no further frame.
    this.draw(performance.now());
  }

  show(moment: Moment): void {
    // With its heading, when it stands under one.
    (this.root.closest("section") ?? this.root).scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
    this.state.show(moment);
    this.flashBegan = performance.now();
    this.live.textContent = visible(`timeline at ${moment.label}${this.state.selected === null ? "" : `: ${sentence(this.model, this.state.selected)}`}`);
  }

  private readInks(): Inks {
    return readInks(this.model.timeline.families, this.causes.map((name) => this.model.name(name)), Math.min(3, Math.max(1, devicePixelRatio || 1)));
  }

  private showLegend(): void {
    const { timeline } = this.model;
    const used = new Set(timeline.name_family);
    const families = timeline.families.map((name, k) => ({ name, fill: FIRST_FAMILY + k })).filter((_, k) => used.has(k));
    const causes = this.causes.map((name, k) => ({ name: this.model.name(name), fill: firstCause(timeline.families.length) + k }));
    this.legendBox.replaceChildren(legend(this.inks, families, causes));
  }

  private timeAt(x: number): number {
    const left = gutterOf(this.body.width);
    const { a, b } = this.shown;
    return a + ((x - left) / Math.max(1, this.body.width - RIGHT - left)) * (b - a);
  }

  private hit(x: number, y: number): Hit | null {
    const line = lineUnder(this.state.lines, y, this.scroller.scrollTop);
    if (line === null || x < gutterOf(this.body.width)) return null;
    const width = this.body.width - RIGHT - gutterOf(this.body.width);
    const slack = ((this.shown.b - this.shown.a) / Math.max(1, width)) * SLACK_PX;
    return hitLine(line, y + this.scroller.scrollTop - line.y, this.timeAt(x), this.shown, width, slack);
  }

  private click(x: number, y: number): void {
    const line = lineUnder(this.state.lines, y, this.scroller.scrollTop);
    if (line === null) return;
    if (line.lane === null) {
      this.state.toggleGroup(line.group);
      return;
    }
    this.state.lane = line.lane.index;
    const hit = this.hit(x, y);
    if (hit === null) this.changed({});
    else if ("event" in hit) this.state.point(hit.event);
    else this.state.selectBlock({ lane: hit.lane.index, level: hit.level, at: hit.at });
  }

  private doubleClick(x: number, y: number): void {
    const line = lineUnder(this.state.lines, y, this.scroller.scrollTop);
    if (line !== null && line.lane !== null && x < gutterOf(this.body.width)) this.state.toggleLane(line.lane.index);
    // The clicks before it have chosen what is there.
    else if (line !== null && line.lane !== null) this.state.enter();
  }

  private hovered(x: number | null, y: number): void {
    this.hover = x === null ? null : this.hit(x, y);
    this.cursor = x === null || x < gutterOf(this.body.width) ? null : this.timeAt(x);
    setText(this.readout, this.readoutText(x, y));
    this.frames.ask();
  }

  private readoutText(x: number | null, y: number): string {
    const line = x === null ? null : lineUnder(this.state.lines, y, this.scroller.scrollTop);
    if (line !== null && line.lane !== null && this.cursor === null) return `${line.lane.lane.title} \u00b7 ${line.lane.lane.group} \u00b7 ${counted(line.lane.lane.total, "event")}`;
    if (this.cursor === null) return "";
    const at = exact(Math.round(this.cursor - this.model.start));
    if (this.hover === null) return at;
    if ("event" in this.hover) {
      const ref = this.model.find(this.hover.event);
      if (ref === null) return at;
      const { start_ns, end_ns } = this.model.facts(ref);
      return `${at} \u00b7 ${duration(end_ns - start_ns)} \u00b7 ${shorten(nameOf(this.model, ref), 160)}`;
    }
    const { lane, level, at: block } = this.hover;
    const { count, name } = lane.level(level);
    return `${at} \u00b7 ${counted(count[block]!, "event")}, most of it ${shorten(this.model.name(name[block]!), 120)}`;
  }

  /** Something of the state changed. */
  private changed({ smooth = false, reveal = false, say }: Change): void {
    const { state } = this;
    if (smooth && !calm()) this.move = { from: this.shown, to: state.view, began: performance.now() };
    else if (this.move === null || this.move.to !== state.view) {
      this.move = null;
      this.shown = state.view;
    }
    if (reveal) this.revealLine();
    const selected = state.selected === null ? "" : this.model.name(this.model.facts(state.selected).name);
    this.root.dataset["selectedName"] = visible(selected);
    this.root.dataset["viewStart"] = String(Math.round(state.view.a));
    this.root.dataset["viewEnd"] = String(Math.round(state.view.b));
    this.showPanel(say);
    this.frames.ask();
  }

  /** Makes the panel again when what is chosen is another. */
  private showPanel(say: string | undefined): void {
    const { selected, block, range } = this.state;
    const key = JSON.stringify([selected?.event ?? null, block, range]);
    const fresh = key !== this.toldPanel;
    this.toldPanel = key;
    if (fresh) {
      // A button of the panel that was pressed goes with it; keys go on where they are of use.
      const held = this.panels.contains(document.activeElement);
      this.panels.replaceChildren(h("div", {}, ...details(this.state, (name) => this.label(name))));
      if (held) this.body.canvas.focus({ preventScroll: true });
    }
    if (say !== undefined) setText(this.live, say);
    else if (fresh && selected !== null) setText(this.live, sentence(this.model, selected));
    else if (fresh && range !== null) setText(this.live, `range of ${duration(range.b - range.a)}`);
  }

  private revealLine(): void {
    const { state, scroller } = this;
    const line = state.lines.find(({ lane }) => lane !== null && lane.index === state.lane);
    if (line === undefined) return;
    this.layout();
    const row = state.selected?.lane === line.lane ? this.model.facts(state.selected).row : 0;
    const top = line.y + row * line.row_height;
    const bottom = top + Math.max(line.row_height, 20);
    if (top < scroller.scrollTop + 24) scroller.scrollTop = Math.max(0, top - 44);
    else if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom + 24 - scroller.clientHeight;
  }

  private layout(): void {
    const height = this.state.height;
    const wanted = `${height}px`;
    if (this.inner.style.height !== wanted) this.inner.style.height = wanted;
    const width = this.scroller.clientWidth;
    const cleared = this.body.resize(width, Math.max(1, Math.min(height, this.scroller.clientHeight)));
    if (cleared && this.brush.ratio !== this.body.ratio) {
      this.inks = this.readInks();
      this.brush = new Brush(this.body.ctx, this.inks, this.fit, this.body.ratio);
    }
    this.head.resize(width, HEAD);
  }

  private draw(now: number): void {
    try {
      this.frame(now);
    } catch (error) {
      // Lanes are unpacked when they come into view, so damage may show late. It is said once.
      this.root.replaceChildren(broken(error));
    }
  }

  private frame(now: number): void {
    // A hidden page has no size yet.
    this.layout();
    const width = this.body.width;
    if (width < 40) return;
    const { state } = this;
    let more = false;
    if (this.move !== null) {
      const share = Math.min(1, Math.max(0, (now - this.move.began) / MOVE_MS));
      this.shown = share < 1 ? between(this.move.from, this.move.to, share) : this.move.to;
      if (share === 1) this.move = null;
      else more = true;
    }
    const lit = this.flashBegan === null || calm() ? 0 : 1 - (now - this.flashBegan) / FLASH_MS;
    if (lit > 0) more = true;
    else this.flashBegan = null;
    const left = gutterOf(width);
    const right = width - RIGHT;
    const scene: Scene = { view: this.shown, left, right, fills: this.fills, label: (name) => this.label(name), detail: (number) => visible(this.model.timeline.details[number] ?? ""), found: state.found };
    drawHead(this.head.ctx, this.inks, {
      fit: this.fit,
      width,
      left,
      right,
      whole: state.whole,
      view: this.shown,
      strips: this.overview(Math.max(1, Math.round(right - left))),
      marks: this.found(Math.max(1, Math.round(right - left))),
      range: state.range,
      cursor: this.cursor,
    });
    drawBody(this.brush, scene, state, {
      width,
      height: this.body.height,
      top: this.scroller.scrollTop,
      hover: this.hover,
      cursor: this.cursor,
      focused: document.activeElement === this.body.canvas,
      flash: Math.max(0, lit),
    });
    this.window.set(this.shown, this);
    if (more) this.frames.ask();
  }

  private overview(columns: number): Strip[] {
    if (this.strips === null || this.strips.columns !== columns) this.strips = { columns, made: strips(this.model, columns) };
    return this.strips.made;
  }

  private found(columns: number): Uint8Array | null {
    const { found } = this.state;
    if (found === null || found.count === 0) return null;
    if (this.marks === null || this.marks.of !== found || this.marks.columns !== columns) {
      this.marks = { of: found, columns, made: foundColumns(this.model, found, columns) };
    }
    return this.marks.made;
  }

  private label(name: number): string {
    const full = this.model.name(name);
    return (this.labels[name] ??= this.model.family(name) < 0 ? visible(full) : (this.known.get(full) ?? shortName(full)));
  }
}
