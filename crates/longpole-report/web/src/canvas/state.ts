/**
 * What the timeline shows and what is chosen in it, and everything that keys and buttons do to it. No drawing, no elements: the
 * view listens through `changed` and asks again.
 */

import type { Moment } from "../data";
import { findByName, neighbour, nextFound, type Found } from "./find";
import { groupsOf, heightOf, linesOf, type Group, type Line } from "./layout";
import type { EventRef, Model } from "./model";
import { around, clampView, panBy, revealed, zoomAt, type View } from "./view";

/** A block of a level, as something that can be chosen. */
export interface Block {
  lane: number;
  level: number;
  at: number;
}

export interface Change {
  /** Whether the eye should be led there, rather than thrown. */
  smooth?: boolean;
  /** Whether the chosen lane, and the chosen event's row, must come into sight. */
  reveal?: boolean;
  /** What to say to those who do not see it. */
  say?: string;
}

export class TimelineState {
  readonly whole: View;
  readonly groups: Group[];
  view: View;
  lines: Line[];
  /** Number of the lane that keys act on. */
  lane: number;
  selected: EventRef | null = null;
  block: Block | null = null;
  range: View | null = null;
  found: Found | null = null;
  /** What is lit up for a moment. */
  flash: { a: number; b: number; lane: number | null } | null = null;
  readonly foldedGroups = new Set<number>();
  readonly smallLanes = new Set<number>();

  constructor(
    readonly model: Model,
    private readonly changed: (change: Change) => void,
  ) {
    this.whole = { a: model.start, b: model.end };
    this.view = { ...this.whole };
    this.groups = groupsOf(model);
    this.lines = linesOf(this.groups, { groups: this.foldedGroups, lanes: this.smallLanes });
    // Keys begin at the device, which is what most come for.
    this.lane = Math.max(0, model.lanes.findIndex((lane) => lane.lane.kind === "stream"));
  }

  get height(): number {
    return heightOf(this.lines);
  }

  setView(view: View, change: Change = {}): void {
    this.view = clampView(view, this.whole);
    this.changed(change);
  }

  /** Moves by a share of what is in view. */
  pan(share: number): void {
    this.setView(panBy(this.view, share * (this.view.b - this.view.a), this.whole));
  }

  /** Zooms by `factor` (below 1: closer) at time `at`; by itself at the chosen event when that is in view, else at the middle. */
  zoom(factor: number, at?: number): void {
    this.setView(zoomAt(this.view, factor, at ?? this.anchor(), this.whole), { smooth: at === undefined });
  }

  private anchor(): number {
    const middle = (this.view.a + this.view.b) / 2;
    if (this.selected === null) return middle;
    const { start_ns, end_ns } = this.model.facts(this.selected);
    const at = (Math.max(start_ns, this.view.a) + Math.min(end_ns, this.view.b)) / 2;
    return at >= this.view.a && at <= this.view.b && start_ns <= this.view.b && end_ns >= this.view.a ? at : middle;
  }

  home(): void {
    this.setView(this.whole, { smooth: true, say: "the whole window" });
  }

  /** Chooses an event that was pointed at: it is seen already, so nothing moves under the pointer. */
  point(event: number): void {
    this.selected = this.model.find(event);
    this.block = null;
    this.lane = this.selected?.lane.index ?? this.lane;
    this.changed({});
  }

  /** Chooses an event, unfolds what hides it and brings it into view. */
  select(event: number): boolean {
    const found = this.model.find(event);
    if (found === null) return false;
    this.selected = found;
    this.block = null;
    this.lane = found.lane.index;
    this.unfold(found.lane.index);
    const { start_ns, end_ns } = this.model.facts(found);
    this.view = revealed(this.view, start_ns, end_ns, this.whole);
    this.changed({ smooth: true, reveal: true });
    return true;
  }

  selectBlock(block: Block): void {
    this.block = block;
    this.selected = null;
    this.lane = block.lane;
    this.changed({});
  }

  clear(): void {
    this.selected = null;
    this.block = null;
    this.range = null;
    this.changed({ say: "nothing chosen" });
  }

  /** Zooms to what is chosen; to the range when that is all there is. */
  enter(): void {
    const span = this.chosenSpan();
    if (span === null) return;
    this.setView(around(span.a, span.b, this.selected === null ? 0.1 : 0.5, this.whole), { smooth: true, reveal: true });
  }

  enterRange(): void {
    if (this.range !== null) this.setView(this.range, { smooth: true });
  }

  private chosenSpan(): View | null {
    if (this.selected !== null) {
      const { start_ns, end_ns } = this.model.facts(this.selected);
      return { a: start_ns, b: end_ns };
    }
    if (this.block !== null) {
      const { spans } = this.model.lanes[this.block.lane]!.level(this.block.level);
      return { a: spans.start[this.block.at]!, b: spans.end[this.block.at]! };
    }
    return this.range;
  }

  stepEvent(step: 1 | -1): void {
    const next = neighbour(this.model, this.lane, this.selected?.event ?? null, step, this.view.a);
    if (next !== null) this.select(next);
    else this.changed({ say: this.model.lanes[this.lane]?.lane.events.n === 0 ? "no events kept in this lane" : "no further event in this lane" });
  }

  /** To the next lane in sight, folded ones left out. */
  stepLane(step: 1 | -1): void {
    const shown = this.lines.flatMap((line) => (line.lane === null ? [] : [line.lane.index]));
    if (shown.length === 0) return;
    const at = shown.indexOf(this.lane);
    const next = at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + step));
    this.lane = shown[next]!;
    const { lane } = this.model.lanes[this.lane]!;
    this.changed({ reveal: true, say: `lane ${lane.title} of ${lane.group}` });
  }

  /** From work to the call that launched it, from a call to the first work it launched. */
  follow(): void {
    if (this.selected === null) return;
    const { launch } = this.model.facts(this.selected);
    const target = launch ?? this.model.launchedBy(this.selected.event)[0];
    if (target === undefined) this.changed({ say: "no link is kept for this event" });
    else this.select(target);
  }

  toggleGroup(group: number): void {
    toggle(this.foldedGroups, group);
    this.relayout({ say: `${this.groups[group]?.title ?? ""} ${this.foldedGroups.has(group) ? "folded" : "unfolded"}` });
  }

  toggleLane(lane: number): void {
    toggle(this.smallLanes, lane);
    this.relayout({ say: `lane ${this.model.lanes[lane]?.lane.title ?? ""} ${this.smallLanes.has(lane) ? "small" : "full size"}` });
  }

  groupOf(lane: number): number {
    return this.groups.findIndex(({ lanes }) => lanes.some(({ index }) => index === lane));
  }

  private unfold(lane: number): void {
    if (this.foldedGroups.delete(this.groupOf(lane)) || this.smallLanes.delete(lane)) this.relayout(null);
  }

  private relayout(change: Change | null): void {
    this.lines = linesOf(this.groups, { groups: this.foldedGroups, lanes: this.smallLanes });
    if (change !== null) this.changed(change);
  }

  setRange(range: View | null): void {
    this.range = range === null ? null : { a: Math.max(this.whole.a, Math.min(range.a, range.b)), b: Math.min(this.whole.b, Math.max(range.a, range.b)) };
    this.changed({});
  }

  search(text: string): void {
    this.found = findByName(this.model, text);
    this.changed({});
  }

  stepFound(step: 1 | -1): void {
    if (this.found === null) return;
    const from = this.selected === null ? { t: this.view.a } : { event: this.selected.event };
    const next = nextFound(this.model, this.found, from, step);
    if (next !== null) this.select(next);
  }

  /** Goes to what the report points at. */
  show(moment: Moment): void {
    const lane = moment.lane !== null && this.model.lanes[moment.lane] !== undefined ? moment.lane : null;
    this.selected = moment.event === null ? null : this.model.find(moment.event);
    this.block = null;
    this.lane = this.selected?.lane.index ?? lane ?? this.lane;
    if (this.selected !== null || lane !== null) this.unfold(this.lane);
    // What has no event of its own is marked as a range, which also says what happened in it.
    if (this.selected === null) this.range = clampView({ a: moment.start_ns, b: moment.end_ns }, this.whole);
    this.flash = { a: moment.start_ns, b: moment.end_ns, lane: this.selected?.lane.index ?? lane };
    this.setView(around(moment.start_ns, moment.end_ns, 0.3, this.whole), { smooth: true, reveal: true });
  }
}

function toggle(set: Set<number>, value: number): void {
  if (!set.delete(value)) set.add(value);
}
