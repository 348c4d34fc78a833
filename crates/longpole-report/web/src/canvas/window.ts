/** The part of the window that the timeline shows, shared with the curves below it so that both stand under the same times. */

import type { Report } from "../data";
import type { View } from "./view";

export class SharedWindow {
  private current: View | null = null;
  private readonly listeners: ((view: View, by: object) => void)[] = [];

  get view(): View | null {
    return this.current;
  }

  /** `by` is who moved it, so that it need not follow itself. */
  set(view: View, by: object): void {
    if (this.current !== null && this.current.a === view.a && this.current.b === view.b) return;
    this.current = view;
    for (const listener of this.listeners) listener(view, by);
  }

  listen(listener: (view: View, by: object) => void): void {
    this.listeners.push(listener);
  }
}

const windows = new WeakMap<Report, SharedWindow>();

/** The one of this report. */
export function sharedWindow(report: Report): SharedWindow {
  let found = windows.get(report);
  if (found === undefined) windows.set(report, (found = new SharedWindow()));
  return found;
}

/** Where times begin, in pixels from the left edge: the same in the timeline and in the curves. */
export function gutterOf(width: number): number {
  return width < 560 ? 84 : width < 900 ? 140 : 184;
}

/** Free pixels right of the last time. */
export const RIGHT = 8;
