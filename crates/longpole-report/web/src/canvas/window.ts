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

/** Two windows that move together, each as far from its own `begin` as the other; until `joined` says otherwise. */
export class Linked {
  joined = true;
  /** From the times of one window to those of the other. */
  private readonly offsets = new Map<SharedWindow, number>();

  constructor(
    private readonly one: SharedWindow,
    begin: number,
    private readonly other: SharedWindow,
    other_begin: number,
  ) {
    this.follow(one, other, other_begin - begin);
    this.follow(other, one, begin - other_begin);
  }

  /** Brings both to the same place: the second goes to the first. */
  join(): void {
    this.joined = true;
    const { view } = this.one;
    if (view !== null) this.move(this.one, this.other, view);
  }

  private follow(from: SharedWindow, to: SharedWindow, offset: number): void {
    this.offsets.set(from, offset);
    from.listen((view, by) => {
      if (this.joined && by !== this) this.move(from, to, view);
    });
  }

  private move(from: SharedWindow, to: SharedWindow, view: View): void {
    const offset = this.offsets.get(from) ?? 0;
    const target = { a: view.a + offset, b: view.b + offset };
    // Each answers what it was told in its own next frame; what differs by rounding alone is no move, or neither would rest.
    const now = to.view;
    const least = (view.b - view.a) * 1e-9;
    if (now === null || Math.abs(now.a - target.a) > least || Math.abs(now.b - target.b) > least) to.set(target, this);
  }
}

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
