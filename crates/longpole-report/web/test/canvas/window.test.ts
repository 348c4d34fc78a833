/** Two windows that move together. */

import { describe, expect, test } from "vitest";
import { Linked, SharedWindow } from "../../src/canvas/window";
import { Model } from "../../src/canvas/model";
import type { View } from "../../src/canvas/view";

/** A window, and a view of it that tells it in the next frame what it was told, as a timeline does. */
function followed() {
  const window = new SharedWindow();
  const seen: View[] = [];
  let waiting: View | null = null;
  const self = {};
  window.listen((view, by) => {
    seen.push(view);
    if (by !== self) waiting = view;
  });
  const frame = (): boolean => {
    if (waiting === null) return false;
    const view = waiting;
    waiting = null;
    window.set({ ...view }, self);
    return true;
  };
  return { window, seen, frame, move: (view: View) => window.set(view, self) };
}

describe("linked windows", () => {
  test("stand as far from their own begin", () => {
    const [a, b] = [followed(), followed()];
    new Linked(a.window, 1_000, b.window, 5_000);
    a.move({ a: 1_000, b: 2_000 });
    expect(b.window.view).toEqual({ a: 5_000, b: 6_000 });
    b.move({ a: 5_500, b: 5_600 });
    expect(a.window.view).toEqual({ a: 1_500, b: 1_600 });
  });

  test("come to rest, whatever the rounding", () => {
    const [a, b] = [followed(), followed()];
    new Linked(a.window, 0.1, b.window, 1e15 + 0.3);
    for (let k = 1; k < 200; k++) {
      a.move({ a: 1 / (3 * k), b: 1e6 / 7 + k / 9 });
      let frames = 0;
      while (a.frame() || b.frame()) expect(++frames).toBeLessThan(6);
    }
    expect(a.seen.length).toBeLessThan(600);
  });

  test("let go of each other and are brought together again", () => {
    const [a, b] = [followed(), followed()];
    const linked = new Linked(a.window, 0, b.window, 10);
    a.move({ a: 0, b: 5 });
    linked.joined = false;
    b.move({ a: 13, b: 14 });
    expect(a.window.view).toEqual({ a: 0, b: 5 });
    linked.join();
    expect(b.window.view).toEqual({ a: 10, b: 15 });
    a.move({ a: 1, b: 2 });
    expect(b.window.view).toEqual({ a: 11, b: 12 });
  });
});

test("the shorter of two timelines has the window of the longer one", () => {
  const timeline = {
    start_ns: 100,
    end_ns: 200,
    names: [],
    name_family: [],
    families: [],
    details: [""],
    lanes: [],
    events_total: 0,
    events_kept: 0,
  };
  const model = (least?: number): number[] => {
    const made = new Model(timeline, new Uint8Array(), least);
    return [made.start, made.end];
  };
  expect(model()).toEqual([100, 200]);
  expect(model(50)).toEqual([100, 200]);
  expect(model(700)).toEqual([100, 800]);
});
