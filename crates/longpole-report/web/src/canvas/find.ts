/** Events by name. */

import type { Model } from "./model";
import { lowerBound } from "./spans";

export interface Found {
  text: string;
  /** 1 for each name that holds the text. */
  names: Uint8Array;
  /** Kept events of these names. */
  count: number;
  /** Their positions, lane by lane. */
  lanes: Uint32Array[];
}

/** Events whose name holds `text`, in any case; `null` when there is nothing to look for. */
export function findByName(model: Model, text: string): Found | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return null;
  const names = Uint8Array.from(model.timeline.names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0));
  const some = names.includes(1);
  let count = 0;
  const lanes = model.lanes.map((lane) => {
    if (!some) return new Uint32Array(0);
    const { name } = lane.events();
    const found = new Uint32Array(name.length);
    let n = 0;
    for (let i = 0; i < name.length; i++) if (names[name[i]!] === 1) found[n++] = i;
    count += n;
    return found.slice(0, n);
  });
  return { text: wanted, names, count, lanes };
}

/**
 * The found event after (`step` 1) or before (-1) another in order of start, then number; from the other end when it was the last.
 * `from` is the event left, or a time when none is selected.
 */
export function nextFound(model: Model, found: Found, from: { event: number } | { t: number }, step: 1 | -1): number | null {
  if (found.count === 0) return null;
  const at = "event" in from ? model.find(from.event) : null;
  const t = at === null ? ("t" in from ? from.t : model.start) : at.lane.events().spans.start[at.at]!;
  const number = at === null ? (step === 1 ? -1 : Infinity) : at.event;
  return best(model, found, t, number, step) ?? best(model, found, step === 1 ? -Infinity : Infinity, step === 1 ? -1 : Infinity, step);
}

function best(model: Model, found: Found, t: number, number: number, step: 1 | -1): number | null {
  let best_t = Infinity * step;
  let best_event: number | null = null;
  model.lanes.forEach((lane, index) => {
    const positions = found.lanes[index]!;
    if (positions.length === 0) return;
    const { first } = lane.lane;
    const { start } = lane.events().spans;
    // Positions ascend with start, so the first one at or after `(t, number)` splits them.
    let low = 0;
    let high = positions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const p = positions[middle]!;
      if (start[p]! < t || (start[p]! === t && first + p < number)) low = middle + 1;
      else high = middle;
    }
    if (step === 1 && low < positions.length && first + positions[low]! === number) low += 1;
    const p = positions[step === 1 ? low : low - 1];
    if (p === undefined) return;
    const event = first + p;
    const closer = (start[p]! - best_t) * step < 0 || (start[p] === best_t && best_event !== null && (event - best_event) * step < 0);
    if (closer) {
      best_t = start[p]!;
      best_event = event;
    }
  });
  return best_event;
}

/** Which of `columns` equal parts of the window hold a found event's start: for marks on the overview. */
export function foundColumns(model: Model, found: Found, columns: number): Uint8Array {
  const marks = new Uint8Array(columns);
  const ns_per_column = (model.end - model.start) / columns;
  model.lanes.forEach((lane, index) => {
    const positions = found.lanes[index]!;
    if (positions.length === 0) return;
    const { start } = lane.events().spans;
    for (let i = 0; i < positions.length; ) {
      const column = Math.min(columns - 1, Math.max(0, Math.floor((start[positions[i]!]! - model.start) / ns_per_column)));
      marks[column] = 1;
      // On to the next column; a mark is enough for all of one.
      const next = model.start + (column + 1) * ns_per_column;
      let low = i + 1;
      let high = positions.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (start[positions[middle]!]! < next) low = middle + 1;
        else high = middle;
      }
      i = low;
    }
  });
  return marks;
}

/** The lane's event after or before another in order of start; the first in view when none of the lane is selected. */
export function neighbour(model: Model, lane: number, selected: number | null, step: 1 | -1, view_a: number): number | null {
  const chosen = model.lanes[lane];
  if (chosen === undefined || chosen.lane.events.n === 0) return null;
  const at = selected === null ? null : model.find(selected);
  const { first } = chosen.lane;
  const n = chosen.lane.events.n;
  if (at !== null && at.lane === chosen) {
    const next = at.at + step;
    return next < 0 || next >= n ? null : first + next;
  }
  const begin = lowerBound(chosen.events().spans.start, view_a);
  return first + Math.min(n - 1, Math.max(0, step === 1 ? begin : begin - 1));
}
