import { expect, test } from "vitest";
import type { Brush } from "../../src/canvas/brush";
import { drawLane, type Scene } from "../../src/canvas/draw_lane";
import { Model } from "../../src/canvas/model";
import { makeTimeline, Packer, random, type Event } from "./synthetic";

const WIDTH = 200;

/** A brush that remembers which columns of which row were painted, and how often it was asked. */
function recorder() {
  const painted = new Map<number, Set<number>>();
  let calls = 0;
  const brush = {
    ratio: 1,
    inks: { fills: Array.from({ length: 20 }, () => ({ glyph: "", text: "", pattern: null })) },
    snap: Math.round,
    rect: (_fill: number, x: number, y: number, w: number) => {
      calls += 1;
      const row = painted.get(Math.floor(y / 20)) ?? new Set();
      painted.set(Math.floor(y / 20), row);
      for (let column = x; column < x + w; column++) row.add(column);
    },
    hatch: () => {},
    mark: () => {},
    note: () => {},
    text: () => 0,
    fit: { fit: () => "", width: () => 0 },
  };
  return { brush: brush as unknown as Brush, painted, calls: () => calls };
}

function drawn(events: Event[], rows: number, view: { a: number; b: number }) {
  const packer = new Packer();
  const timeline = makeTimeline(packer, [0, 100_000], [{ name: "k", family: 0 }], ["other"], [{ kind: "stream", group: "g", title: "t", rows, events }]);
  const lane = new Model(timeline, packer.done()).lanes[0]!;
  const { brush, painted, calls } = recorder();
  const scene: Scene = { view, left: 0, right: WIDTH, fills: { stream: Uint16Array.of(6) }, label: () => "k", detail: () => "", found: null };
  drawLane(brush, scene, { y: 0, height: 100, group: 0, lane, row_height: 20 }, lane, 0);
  return { painted, calls: calls() };
}

test("every event in view is painted where it is, and nothing else is, however long or short they are", () => {
  const next = random(31);
  for (let round = 0; round < 200; round++) {
    const rows = 1 + Math.floor(next() * 3);
    const events: Event[] = Array.from({ length: Math.floor(10 ** (1 + 2 * next())) }, () => ({
      start: Math.floor(next() * 90_000),
      // Most are slivers; some cover a good part of the window, and begin among slivers.
      dur: next() < 0.05 ? Math.floor(next() * 10_000) : Math.floor(next() * 60),
      name: 0,
      row: Math.floor(next() * rows),
    })).sort((x, y) => x.start - y.start);
    const a = Math.floor(next() * 50_000);
    const view = { a, b: a + 100 + Math.floor(next() * 50_000) };
    const { painted } = drawn(events, rows, view);
    const px = (t: number) => ((t - view.a) / (view.b - view.a)) * WIDTH;
    const may = new Map<number, Set<number>>();
    for (const { start, dur, row } of events) {
      if (start > view.b || start + dur < view.a) continue;
      const columns = may.get(row ?? 0) ?? new Set();
      may.set(row ?? 0, columns);
      const [x0, x1] = [Math.max(0, px(start)), Math.min(WIDTH, px(start + dur))];
      for (let column = Math.floor(x0) - 1; column <= Math.ceil(x1) + 1; column++) columns.add(column);
      // The last pixel of a wide one is the gap to its neighbour.
      for (let column = Math.ceil(x0); column < Math.floor(x1) - 2; column++) expect(painted.get(row ?? 0)?.has(column)).toBe(true);
      // A sliver is seen within a pixel of where it is.
      if (x1 - x0 < 1 && x0 < WIDTH - 1) expect([-1, 0, 1].some((off) => painted.get(row ?? 0)?.has(Math.round(x0) + off))).toBe(true);
    }
    for (const [row, columns] of painted) for (const column of columns) expect(may.get(row)?.has(column)).toBe(true);
  }
});

test("the work of a picture follows its width, not its events", () => {
  const events = Array.from({ length: 50_000 }, (_, k) => ({ start: 2 * k, dur: 1, name: 0 }));
  expect(drawn(events, 1, { a: 0, b: 100_000 }).calls).toBeLessThanOrEqual(2 * WIDTH);
});
