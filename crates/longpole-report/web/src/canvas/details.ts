/** What is known of what is chosen: the panel under the timeline, and the same in a sentence. */

import { h, shorten, type Child } from "../text";
import { causeWords } from "./words";
import { rangeSums } from "./choose";
import type { EventRef, Model } from "./model";
import type { TimelineState } from "./state";
import { counted, duration, exact, grouped, percent } from "./time";

/** Launched work that is listed by name; the rest is a number. */
const MOST_LISTED = 8;
/** Lanes of a range's table. */
const MOST_LANES = 16;

const row = (term: string, ...what: Child[]): Child => [h("dt", {}, term), h("dd", {}, ...what)];

/** A button that goes to an event. */
function jump(state: TimelineState, event: number, words: string): Child {
  return h("button", { type: "button", class: "lp-jump", click: () => state.select(event) }, words);
}

/** The event's name in full: of gaps the cause in words, of steps with their number. */
export function nameOf(model: Model, ref: EventRef): string {
  const { name: index, detail } = model.facts(ref);
  const name = model.name(index);
  if (ref.lane.lane.kind === "gaps") return causeWords(name);
  const number = ref.lane.lane.kind === "steps" ? (model.timeline.details[detail] ?? "") : "";
  return number === "" ? name : `${name} \u00b7 ${number}`;
}

/** What the live region says of the chosen event. */
export function sentence(model: Model, ref: EventRef): string {
  const { start_ns, end_ns } = model.facts(ref);
  const { title, group } = ref.lane.lane;
  return `${shorten(nameOf(model, ref), 120)}, ${duration(end_ns - start_ns)}, at ${exact(start_ns - model.start)}, ${title} of ${group}`;
}

function button(words: string, click: () => void): Child {
  return h("button", { type: "button", click }, words);
}

/** `label` gives the short form of a name by number. */
export function details(state: TimelineState, label: (name: number) => string): Child[] {
  const parts: Child[] = [];
  if (state.selected !== null) parts.push(eventPanel(state, state.selected, label));
  else if (state.block !== null) parts.push(blockPanel(state));
  if (state.range !== null) parts.push(rangePanel(state));
  if (parts.length === 0) parts.push(h("p", { class: "lp-hint" }, "Nothing chosen. Click an event, or put the focus on the timeline and press n."));
  return parts;
}

function eventPanel(state: TimelineState, ref: EventRef, label: (name: number) => string): Child {
  const { model } = state;
  const { timeline } = model;
  const facts = model.facts(ref);
  const family = timeline.families[model.family(facts.name)];
  const detail = timeline.details[facts.detail] ?? "";
  const { kind, title, group } = ref.lane.lane;
  const what = { steps: "step", ranges: "range", ops: "operator", calls: "call", stream: "device work", gaps: "idle gap" }[kind];
  return h(
    "section",
    { class: "lp-panel", "aria-label": "Chosen event" },
    h("h3", { class: "lp-name" }, nameOf(model, ref)),
    h(
      "dl",
      {},
      row("kind", family === undefined ? what : `${what} \u00b7 ${family}`),
      row("start", h("span", { class: "lp-number" }, exact(facts.start_ns - model.start)), " after the window's start"),
      row("duration", h("span", { class: "lp-number" }, exact(facts.end_ns - facts.start_ns))),
      row("lane", `${title} \u00b7 ${group}`),
      detail !== "" && row("details", detail),
      facts.owner !== null && row("launched in", model.name(facts.owner)),
      links(state, ref, label),
    ),
    h("p", { class: "lp-bar" }, button("zoom to it", () => state.enter()), button("previous in lane", () => state.stepEvent(-1)), button("next in lane", () => state.stepEvent(1))),
  );
}

function links(state: TimelineState, ref: EventRef, label: (name: number) => string): Child {
  const { model } = state;
  const { start_ns, launch } = model.facts(ref);
  if (launch !== null) {
    const call = model.find(launch);
    if (call === null) return null;
    const from = model.facts(call);
    const delay = start_ns - from.end_ns;
    const words = delay >= 0 ? `${duration(delay)} from the call's end to its start` : `started ${duration(-delay)} before the call returned`;
    return [row("launched by", jump(state, launch, shorten(nameOf(model, call), 60)), ` (l), ${duration(start_ns - from.start_ns)} after the call began`), row("delay", words)];
  }
  const work = model.launchedBy(ref.event);
  if (work.length === 0) {
    return ref.lane.lane.kind === "stream" && row("launched by", ref.lane.lane.events.launch === null ? "not recorded" : "not recorded, or the call is not kept in this page");
  }
  const listed = Array.from(work.subarray(0, MOST_LISTED), (event) => {
    const to = model.find(event);
    if (to === null) return null;
    const { start_ns: begins, end_ns: ends, name } = model.facts(to);
    return h("li", {}, jump(state, event, shorten(label(name), 60)), ` ${duration(ends - begins)}, ${duration(begins - start_ns)} after the call began`);
  });
  const more = work.length - listed.length;
  const extent = extentOf(model, work);
  const together = work.length > 1 && row("together", `${duration(extent.b - extent.a)} from the first one's start to the last one's end`);
  const list = row(`launched (${grouped(work.length)})`, h("ul", { class: "lp-launched" }, listed, more > 0 && h("li", {}, `and ${grouped(more)} more`)));
  return [list, together];
}

function extentOf(model: Model, events: Uint32Array): { a: number; b: number } {
  let a = Infinity;
  let b = -Infinity;
  for (const event of events) {
    const ref = model.find(event);
    if (ref === null) continue;
    const { spans } = ref.lane.events();
    a = Math.min(a, spans.start[ref.at]!);
    b = Math.max(b, spans.end[ref.at]!);
  }
  return { a, b };
}

function blockPanel(state: TimelineState): Child {
  const { lane: index, level, at } = state.block!;
  const lane = state.model.lanes[index]!;
  const { spans, count, busy, name } = lane.level(level);
  const extent = spans.end[at]! - spans.start[at]!;
  const most = state.model.name(name[at]!);
  const words = lane.lane.kind === "gaps" ? causeWords(most) : most;
  return h(
    "section",
    { class: "lp-panel", "aria-label": "Chosen block" },
    h("h3", {}, `${counted(count[at]!, "event")} drawn as one block`),
    h(
      "dl",
      {},
      row("most of it", h("span", { class: "lp-name" }, words)),
      row("start", h("span", { class: "lp-number" }, exact(spans.start[at]! - state.model.start)), " after the window's start"),
      row("extent", h("span", { class: "lp-number" }, exact(extent))),
      row("covered", `${duration(busy[at]!)}${extent > 0 ? ` (${percent(Math.min(1, busy[at]! / extent))})` : ""}`),
      row("lane", `${lane.lane.title} \u00b7 ${lane.lane.group}`),
      !lane.whole && row("detail", "not every event of this lane is kept in this page; press Enter to zoom in"),
    ),
  );
}

function rangePanel(state: TimelineState): Child {
  const { a, b } = state.range!;
  const sums = state.model.lanes
    .map((lane) => ({ lane, ...rangeSums(lane, a, b) }))
    .filter(({ count }) => count > 0)
    .sort((x, y) => Number(y.lane.lane.kind === "stream") - Number(x.lane.lane.kind === "stream") || y.busy_ns - x.busy_ns);
  const about = sums.some((sum) => sum.about);
  const length = b - a;
  return h(
    "section",
    { class: "lp-panel", "aria-label": "Chosen range of time" },
    h("h3", {}, `Range of ${exact(Math.round(length))}`),
    h("p", {}, `From ${exact(Math.round(a - state.model.start))} to ${exact(Math.round(b - state.model.start))} after the window's start.`),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ["lane", "events", "busy", "share"].map((title) => h("th", { scope: "col" }, title)))),
      h(
        "tbody",
        {},
        sums.slice(0, MOST_LANES).map(({ lane, count, busy_ns, about: rough }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, `${lane.lane.title} \u00b7 ${shorten(lane.lane.group, 40)}`),
            h("td", {}, `${rough ? "about " : ""}${grouped(count)}`),
            h("td", {}, `${rough ? "about " : ""}${duration(busy_ns)}`),
            h("td", {}, percent(length > 0 ? busy_ns / length : 0)),
          ),
        ),
      ),
    ),
    sums.length > MOST_LANES && h("p", { class: "lp-hint" }, `and ${counted(sums.length - MOST_LANES, "lane")} more`),
    h("p", { class: "lp-bar" }, button("zoom to it", () => state.enterRange()), button("clear", () => state.setRange(null))),
    about && h("p", { class: "lp-hint" }, "about: read from blocks that reach over the range's ends, since not every event is kept."),
  );
}
