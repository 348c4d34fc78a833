/** What stands around the timeline's picture: search, buttons, the list of keys, and the note on what is kept. */

import type { Timeline } from "../data";
import { h, setText } from "../text";
import type { TimelineState } from "./state";
import { counted, grouped } from "./time";
import { KEYS } from "./words";

export function searchBox(): HTMLInputElement {
  return h("input", { type: "search", placeholder: "find events by name", "aria-label": "Find events by name", spellcheck: "false" });
}

export function toolbar(state: TimelineState, input: HTMLInputElement, keysList: () => void): HTMLElement {
  const button = (words: string, label: string, click: () => void) => h("button", { type: "button", "aria-label": label, title: label, click }, words);
  const count = h("output", { class: "lp-count" });
  input.addEventListener("input", () => {
    state.search(input.value);
    setText(count, state.found === null ? "" : counted(state.found.count, "event"));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    state.stepFound(event.shiftKey ? -1 : 1);
  });
  return h(
    "div",
    { class: "lp-bar", role: "group", "aria-label": "Timeline controls" },
    input,
    button("\u2039", "previous event found", () => state.stepFound(-1)),
    button("\u203a", "next event found", () => state.stepFound(1)),
    count,
    h("span", { class: "lp-gap" }),
    button("+", "zoom in", () => state.zoom(0.5)),
    button("\u2212", "zoom out", () => state.zoom(2)),
    button("whole window", "show the whole window", () => state.home()),
    button("keys", "list of keys", keysList),
  );
}

export function keysDialog(): HTMLDialogElement {
  return h(
    "dialog",
    { class: "lp-keys", "aria-label": "Keys of the timeline" },
    h("h3", {}, "Keys of the timeline"),
    h("dl", {}, KEYS.map(([keys, what]) => [h("dt", {}, keys), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "close")),
  );
}

/** Says that not every event is kept, when that is so. */
export function keptNote({ events_kept, events_total }: Timeline): HTMLElement | null {
  if (events_kept >= events_total) return null;
  return h(
    "p",
    { class: "lp-hint" },
    `This page keeps ${grouped(events_kept)} of ${counted(events_total, "event")} one by one; the others are in blocks, hatched where single events would be seen. Search and n, p know the kept ones.`,
  );
}
