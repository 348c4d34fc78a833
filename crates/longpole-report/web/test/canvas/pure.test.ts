import { describe, expect, test } from "vitest";
import { isComplete, levelFor, piecesFor, rangeSums } from "../../src/canvas/choose";
import { findByName, foundColumns, neighbour, nextFound } from "../../src/canvas/find";
import { groupsOf, heightOf, hitLine, lineAt, linesIn, linesOf, lineUnder, pinnedHeading } from "../../src/canvas/layout";
import { Model } from "../../src/canvas/model";
import { shortName, TextFit } from "../../src/canvas/names";
import { occupancy } from "../../src/canvas/overview";
import { inView, lowerBound, makeSpans, nextReaching, positionsIn, spanAt } from "../../src/canvas/spans";
import { counted, duration, exact, grouped, niceStep, size, ticks } from "../../src/canvas/time";
import { around, between, clampView, panBy, pinched, revealed, zoomAt } from "../../src/canvas/view";
import { readableOn } from "../../src/canvas/ink";
import { blocksOf, makeRun, makeTimeline, Packer, random, type Event } from "./synthetic";

/** Events on rows, sorted by start; some long, many touching, some of no length. */
function someEvents(next: () => number, n: number, rows: number): Event[] {
  return Array.from({ length: n }, () => ({
    start: Math.floor(next() * 1000),
    dur: next() < 0.1 ? Math.floor(next() * 600) : Math.floor(next() * 12),
    name: Math.floor(next() * 4),
    row: Math.floor(next() * rows),
  })).sort((x, y) => x.start - y.start);
}

const spansOf = (events: Event[], rows: number) =>
  makeSpans(
    Float64Array.from(events, ({ start }) => start),
    Float64Array.from(events, ({ dur }) => dur),
    rows === 1 ? null : Uint32Array.from(events, ({ row }) => row ?? 0),
    rows,
  );

describe("spans, against looking at each", () => {
  test("every event that touches the view is found, and the range around them is tight at its ends", () => {
    const next = random(7);
    for (let round = 0; round < 300; round++) {
      const rows = 1 + Math.floor(next() * 4);
      const events = someEvents(next, Math.floor(next() * (round % 10 === 0 ? 900 : 60)), rows);
      const spans = spansOf(events, rows);
      const a = Math.floor(next() * 1100) - 50;
      const b = a + Math.floor(next() * 300);
      for (let r = 0; r < rows; r++) {
        const [from, to] = inView(spans, r, a, b);
        const found = [...spans.order.slice(from, to)].filter((i) => spans.end[i]! >= a);
        const slow = events.flatMap(({ start, dur, row }, i) => ((rows === 1 || row === r) && start <= b && start + dur >= a ? [i] : []));
        expect(found).toEqual(slow);
        if (slow.length > 0) expect(spans.order[from]).toBe(slow[0]);
        const t = Math.floor(next() * 1000);
        const reaching = [...spans.order.slice(from, to)].findIndex((i) => spans.end[i]! >= t);
        expect(nextReaching(spans, from, to, t)).toBe(reaching < 0 ? to : from + reaching);
      }
      const [first, last] = positionsIn(spans, a, b);
      events.forEach(({ start, dur }, i) => {
        if (start <= b && start + dur >= a) expect(i >= first && i < last).toBe(true);
      });
    }
  });

  test("the event under a point is the last drawn, else the nearest within reach", () => {
    const next = random(11);
    for (let round = 0; round < 500; round++) {
      const rows = 1 + Math.floor(next() * 3);
      const events = someEvents(next, 1 + Math.floor(next() * 40), rows);
      const spans = spansOf(events, rows);
      const t = Math.floor(next() * 1050);
      const slack = Math.floor(next() * 8);
      const r = Math.floor(next() * rows);
      const away = ({ start, dur }: Event) => (start > t ? start - t : Math.max(0, t - start - dur));
      const near = events.flatMap((event, i) => ((rows === 1 || event.row === r) && away(event) <= slack ? [{ i, away: away(event) }] : []));
      const least = Math.min(...near.map((one) => one.away));
      const found = spanAt(spans, r, t, slack);
      if (near.length === 0) expect(found).toBe(-1);
      else {
        expect(away(events[found]!)).toBe(least);
        if (least === 0) expect(found).toBe(Math.max(...near.filter((one) => one.away === 0).map(({ i }) => i)));
      }
      expect(spanAt(spans, rows, t, slack)).toBe(-1);
    }
  });

  test("rows beyond what a lane says share its last one", () => {
    const spans = makeSpans(Float64Array.of(1, 2), Float64Array.of(1, 1), Uint32Array.of(0, 4_000_000_000), 2);
    expect([...spans.row!]).toEqual([0, 1]);
    expect(makeSpans(Float64Array.of(1), Float64Array.of(1), Uint32Array.of(9), 1e12).rows).toBe(256);
    expect(lowerBound([1, 3, 3, 7], 3)).toBe(1);
    expect(lowerBound([1, 3], 9)).toBe(2);
  });
});

/** One stream of busy work with windows kept, and what was in it. */
function partly(seed: number) {
  const next = random(seed);
  const events: Event[] = [];
  for (let t = 0; t < 100_000; ) {
    const dur = 1 + Math.floor(next() * 40);
    events.push({ start: t, dur, name: Math.floor(next() * 3) });
    t += dur + Math.floor(next() * 30);
  }
  const packer = new Packer();
  const complete: [number, number][] = [[10_000, 12_000], [50_000, 53_000]];
  const timeline = makeTimeline(packer, [0, 100_000], ["a", "b", "c"].map((name) => ({ name, family: 0 })), ["gemm/gemv"], [
    { kind: "stream", group: "GPU 0", title: "stream 7", events, complete, resolutions: [200, 1600] },
  ]);
  return { events, model: new Model(timeline, packer.done()), lane: new Model(timeline, packer.done()).lanes[0]! };
}

describe("what is drawn where", () => {
  test("levels are about a pixel", () => {
    expect(levelFor([100, 400, 1600], 50)).toBe(-1);
    expect(levelFor([100, 400, 1600], 100)).toBe(0);
    expect(levelFor([100, 400, 1600], 1100)).toBe(2);
    expect(levelFor([], 5)).toBe(-1);
  });

  test("pieces cover the view in order, with events exactly where all are kept", () => {
    const { lane } = partly(3);
    const next = random(5);
    for (let round = 0; round < 400; round++) {
      const a = next() * 99_000;
      const b = Math.min(100_000, a + 10 ** (1 + 4 * next()));
      const pieces = piecesFor(lane, { a, b }, 800);
      expect(pieces[0]!.a).toBe(a);
      expect(pieces[pieces.length - 1]!.b).toBe(b);
      pieces.forEach((piece, k) => {
        if (k > 0) expect(piece.a).toBe(pieces[k - 1]!.b);
        if (piece.level === null) expect(isComplete(lane, piece.a, piece.b)).toBe(true);
        if (piece.summary) expect((b - a) / 800).toBeLessThan(200 / 1.5);
      });
    }
    expect(piecesFor(lane, { a: 0, b: 100_000 }, 200)).toEqual([{ a: 0, b: 100_000, level: 0, summary: false }]);
    expect(piecesFor(lane, { a: 0, b: 100_000 }, 40)).toEqual([{ a: 0, b: 100_000, level: 1, summary: false }]);
    expect(piecesFor(lane, { a: 9_000, b: 13_000 }, 800).map(({ level, summary }) => [level, summary])).toEqual([[0, true], [null, false], [0, true]]);
  });

  test("sums of a range are exact where events are kept and say so where they are not", () => {
    const { events, lane } = partly(4);
    const slow = (a: number, b: number) => {
      const touching = events.filter(({ start, dur }) => start <= b && start + dur >= a);
      return { count: touching.length, busy: touching.reduce((sum, { start, dur }) => sum + Math.max(0, Math.min(b, start + dur) - Math.max(a, start)), 0) };
    };
    const next = random(9);
    for (let round = 0; round < 100; round++) {
      const a = 10_000 + Math.floor(next() * 1000);
      const b = a + Math.floor(next() * 1000);
      const { count, busy } = slow(a, b);
      expect(rangeSums(lane, a, b)).toEqual({ count, busy_ns: busy, about: false });
    }
    const whole = rangeSums(lane, 0, 100_000);
    const { count, busy } = slow(0, 100_000);
    expect(whole.about).toBe(true);
    expect(Math.abs(whole.count - count) / count).toBeLessThan(0.02);
    expect(Math.abs(whole.busy_ns - busy) / busy).toBeLessThan(0.02);
  });

  test("blocks of the test's own maker lose no time and no event", () => {
    const { events } = partly(6);
    const blocks = blocksOf(events, 200);
    expect(blocks.reduce((sum, { count }) => sum + count, 0)).toBe(events.length);
    expect(blocks.reduce((sum, { busy }) => sum + busy, 0)).toBe(events.reduce((sum, { dur }) => sum + dur, 0));
  });

  test("the overview's columns hold all of the time", () => {
    const { events, lane } = partly(8);
    const columns = new Float32Array(50);
    occupancy(lane, 0, 100_000, columns);
    const busy = columns.reduce((sum, share) => sum + share * 2000, 0);
    const all = events.reduce((sum, { start, dur }) => sum + Math.min(100_000, start + dur) - start, 0);
    expect(Math.abs(busy - all) / all).toBeLessThan(0.001);
  });
});

describe("lanes from top to bottom", () => {
  const { report, bytes } = makeRun({ window_ns: 1e8, devices: 2, streams: 3, threads: 2, kernels: 200, kept: 1 });
  const model = new Model(report.timeline!, bytes);
  const groups = groupsOf(model);

  test("groups are runs of equal names, folded ones show but their heading", () => {
    expect(groups.map(({ lanes }) => lanes.length)).toEqual([1, 3, 3, 4, 4]);
    const open = linesOf(groups, { groups: new Set(), lanes: new Set() });
    const folded = linesOf(groups, { groups: new Set([3]), lanes: new Set() });
    expect(open.length).toBe(20);
    expect(folded.length).toBe(16);
    expect(heightOf(folded)).toBeLessThan(heightOf(open));
    const small = linesOf(groups, { groups: new Set(), lanes: new Set([2]) });
    expect(small.find(({ lane }) => lane?.index === 2)!.row_height).toBe(4);
  });

  test("lines are found by where they stand", () => {
    const lines = linesOf(groups, { groups: new Set(), lanes: new Set() });
    for (let y = 0; y < heightOf(lines); y += 3) {
      const slow = lines.find((line) => y >= line.y && y < line.y + line.height)!;
      expect(lineAt(lines, y)).toBe(slow);
    }
    expect(lineAt(lines, -1)).toBeNull();
    expect(lineAt(lines, heightOf(lines) + 1)).toBeNull();
    expect(linesIn(lines, 0, heightOf(lines))).toEqual([0, lines.length]);
  });

  test("a group's heading stays at the top until the next one pushes it out", () => {
    const lines = linesOf(groups, { groups: new Set(), lanes: new Set() });
    expect(pinnedHeading(lines, 0)).toBeNull();
    for (let top = 1; top < heightOf(lines) - 30; top++) {
      const headings = lines.filter(({ lane }) => lane === null);
      const current = headings.filter(({ y }) => y <= top).at(-1)!;
      const next = headings.find(({ y }) => y > top);
      const pinned = pinnedHeading(lines, top);
      if (current.y === top) expect(pinned).toBeNull();
      else expect(pinned).toEqual({ line: current, y: Math.min(0, next === undefined ? 0 : next.y - top - 22) });
      if (pinned !== null && pinned.y === 0) expect(lineUnder(lines, 3, top)).toBe(current);
      expect(lineUnder(lines, 25, top)).toBe(lineAt(lines, top + 25));
    }
  });

  test("what is hit is the event at that time and row", () => {
    const lines = linesOf(groups, { groups: new Set(), lanes: new Set() });
    const line = lines.find(({ lane }) => lane?.lane.kind === "ops")!;
    const { spans } = line.lane!.events();
    for (let i = 0; i < spans.n; i += 7) {
      const t = (spans.start[i]! + spans.end[i]!) / 2;
      const y = (spans.row![i]! + 0.5) * line.row_height;
      expect(hitLine(line, y, t, { a: t - 1e5, b: t + 1e5 }, 1000, 0)).toEqual({ event: line.lane!.lane.first + i });
    }
    expect(hitLine(line, 500, 5, { a: 0, b: 10 }, 1000, 0)).toBeNull();
  });

  test("a block of one kept event is that event", () => {
    const { lane } = partly(3);
    const line = { y: 0, height: 20, group: 0, lane, row_height: 20 };
    const blocks = lane.level(0);
    const kept = lane.events();
    let alone = 0;
    for (let i = 0; i < blocks.spans.n; i++) {
      const t = blocks.spans.start[i]!;
      const hit = hitLine(line, 5, t, { a: 0, b: 100_000 }, 400, 0);
      if (hit !== null && "event" in hit) {
        alone += 1;
        expect(kept.spans.start[hit.event]).toBe(t);
        expect(blocks.count[i]).toBe(1);
      } else expect(hit).toEqual({ lane, level: 0, at: i });
    }
    expect(alone).toBe([...blocks.count].filter((n, i) => n === 1 && isComplete(lane, blocks.spans.start[i]!, blocks.spans.end[i]!)).length);
  });
});

describe("links and search", () => {
  const { report, bytes } = makeRun({ window_ns: 1e8, devices: 1, streams: 2, threads: 1, kernels: 300, kept: 0.5, seed: 3 });
  const model = new Model(report.timeline!, bytes);

  test("launches are the inverse of what kernels name", () => {
    const slow = new Map<number, number[]>();
    for (let event = 0; event < model.events; event++) {
      const { launch } = model.facts(model.find(event)!);
      if (launch !== null) slow.set(launch, [...(slow.get(launch) ?? []), event]);
    }
    expect(slow.size).toBeGreaterThan(10);
    for (let event = 0; event < model.events; event++) expect([...model.launchedBy(event)].sort((x, y) => x - y)).toEqual(slow.get(event) ?? []);
    expect(model.find(model.events)).toBeNull();
    expect(model.find(-1)).toBeNull();
    expect(model.find(0.5)).toBeNull();
  });

  test("each found event is come upon once, in order, both ways around", () => {
    const found = findByName(model, "  GEMM_gemv_kernel_2 ")!;
    const slow: { event: number; start: number }[] = [];
    for (let event = 0; event < model.events; event++) {
      const { name, start_ns } = model.facts(model.find(event)!);
      if (model.name(name).includes("gemm_gemv_kernel_2")) slow.push({ event, start: start_ns });
    }
    slow.sort((x, y) => x.start - y.start || x.event - y.event);
    expect(found.count).toBe(slow.length);
    expect(slow.length).toBeGreaterThan(2);
    for (const step of [1, -1] as const) {
      const order = step === 1 ? slow : [...slow].reverse();
      let at = nextFound(model, found, { t: step === 1 ? -1 : 1e12 }, step);
      for (const { event } of order) {
        expect(at).toBe(event);
        at = nextFound(model, found, { event: at! }, step);
      }
      expect(at).toBe(order[0]!.event);
    }
    expect(findByName(model, " ")).toBeNull();
    expect(nextFound(model, findByName(model, "no such name")!, { t: 0 }, 1)).toBeNull();
    const marks = foundColumns(model, found, 100);
    const columns = new Uint8Array(100);
    for (const { start } of slow) columns[Math.min(99, Math.floor(start / 1e6))] = 1;
    expect([...marks]).toEqual([...columns]);
  });

  test("neighbours in a lane stop at its ends", () => {
    const lane = model.lanes.find(({ lane: { kind } }) => kind === "stream")!;
    const { first, events } = lane.lane;
    expect(neighbour(model, lane.index, first, 1, 0)).toBe(first + 1);
    expect(neighbour(model, lane.index, first, -1, 0)).toBeNull();
    expect(neighbour(model, lane.index, first + events.n - 1, 1, 0)).toBeNull();
    const t = lane.events().spans.start[5]!;
    expect(neighbour(model, lane.index, null, 1, t)).toBe(first + 5);
    expect(neighbour(model, 999, null, 1, 0)).toBeNull();
  });
});

describe("views", () => {
  const whole = { a: 1000, b: 1_001_000 };

  test("no motion leaves the window or gets too narrow, and what the pointer is on stays under it", () => {
    const next = random(21);
    let view = { ...whole };
    for (let round = 0; round < 2000; round++) {
      const at = view.a + next() * (view.b - view.a);
      const share = (at - view.a) / (view.b - view.a);
      const zoomed = zoomAt(view, 0.3 + next(), at, whole);
      if (zoomed.a > whole.a && zoomed.b < whole.b) expect(zoomed.a + share * (zoomed.b - zoomed.a)).toBeCloseTo(at, 3);
      view = next() < 0.5 ? zoomed : panBy(view, (next() - 0.5) * 1e5, whole);
      if (next() < 0.02) view = { ...whole };
      expect(view.a).toBeGreaterThanOrEqual(whole.a);
      expect(view.b).toBeLessThanOrEqual(whole.b + 1e-6);
      expect(view.b - view.a).toBeGreaterThanOrEqual(99.99);
    }
    expect(clampView({ a: 5, b: 5 }, { a: 0, b: 10 })).toEqual({ a: 0, b: 10 });
  });

  test("a view around a span holds it; revealing moves no more than needed", () => {
    expect(around(5000, 6000, 0.5, whole)).toEqual({ a: 4500, b: 6500 });
    const view = { a: 10_000, b: 20_000 };
    expect(revealed(view, 12_000, 13_000, whole)).toBe(view);
    expect(revealed(view, 25_000, 26_000, whole)).toEqual({ a: 17_000, b: 27_000 });
    expect(revealed(view, 5_000, 5_100, whole)).toEqual({ a: 4_000, b: 14_000 });
    const wide = revealed(view, 5_000, 45_000, whole);
    expect(wide.a <= 5_000 && wide.b >= 45_000).toBe(true);
  });

  test("a pinch keeps its times under its fingers", () => {
    const view = pinched(400_000, 500_000, 100, 300, 1000, whole);
    expect(view.a + 100 * ((view.b - view.a) / 1000)).toBeCloseTo(400_000);
    expect(view.a + 300 * ((view.b - view.a) / 1000)).toBeCloseTo(500_000);
  });

  test("the way between two views begins and ends at them", () => {
    const to = { a: 500_000, b: 500_200 };
    expect(between(whole, to, 0).a).toBeCloseTo(whole.a);
    expect(between(whole, to, 1).a).toBeCloseTo(to.a);
    expect(between(whole, to, 1).b).toBeCloseTo(to.b);
    expect(between({ a: 0, b: 10 }, { a: 10, b: 20 }, 0.5)).toEqual({ a: 5, b: 15 });
  });
});

describe("words", () => {
  test("times and sizes", () => {
    expect([0, 999, 1000, 12_345, 123_456, 1_234_567, 12_345_678_901].map(duration)).toEqual(["0 ns", "999 ns", "1.000 us", "12.35 us", "123.5 us", "1.235 ms", "12.35 s"]);
    expect([5, 1234, 1_234_567_890].map(exact)).toEqual(["5 ns", "1.234 us", "1.234567890 s"]);
    expect([0, 2048, 1.5 * 2 ** 30].map(size)).toEqual(["0 B", "2.00 KiB", "1.50 GiB"]);
    expect([counted(1, "event"), counted(12345, "event"), grouped(1234567)]).toEqual(["1 event", "12,345 events", "1,234,567"]);
  });

  test("marks of an axis are apart, in the view, and tell themselves apart", () => {
    const next = random(2);
    for (let round = 0; round < 500; round++) {
      const a = Math.floor(next() * 1e10);
      const span = 10 ** (2 + 8.5 * next());
      const { at, step, label } = ticks(a, a + span, 900, 90, 0);
      expect(step / (span / 900)).toBeGreaterThanOrEqual(89.9);
      expect(new Set(at.map(label)).size).toBe(at.length);
      at.forEach((t) => expect(t >= a - 1e-3 && t <= a + span + 1e-3).toBe(true));
    }
    expect([niceStep(1.1), niceStep(30), niceStep(0.1), niceStep(NaN)]).toEqual([2, 50, 1, 1]);
  });

  test("short names of kernels", () => {
    expect(shortName("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::F)")).toBe("vectorized_elementwise_kernel");
    expect(shortName("void (anonymous namespace)::softmax_warp_forward<float, 8>(float*)")).toBe("softmax_warp_forward");
    expect(shortName("at::native::(anonymous namespace)::fused<int>(int)")).toBe("fused");
    expect(shortName("Memcpy HtoD (Pinned -> Device)")).toBe("Memcpy HtoD (Pinned -> Device)");
    expect(shortName("triton_poi_fused_add_0")).toBe("triton_poi_fused_add_0");
    expect(shortName("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(P<int>)")).toBe("gemvx::kernel");
    expect(shortName("void kernel<int>(int)")).toBe("kernel");
    expect(shortName("nccl(<>(")).toBe("nccl");
    expect(shortName("<")).toBe("<");
    expect(shortName("a\u202eb")).toBe("a\u27e8U+202E\u27e9b");
  });

  test("texts are cut to what they may take", () => {
    const fit = new TextFit((text) => text.length * 6);
    expect(fit.fit("kernel", 36)).toBe("kernel");
    expect(fit.fit("kernel", 35)).toBe("kern\u2026");
    expect(fit.fit("kernel", 13)).toBe("");
    const next = random(4);
    for (let round = 0; round < 300; round++) {
      const text = "x".repeat(Math.floor(next() * 30));
      const most = next() * 200;
      expect(fit.width(fit.fit(text, most))).toBeLessThanOrEqual(most);
    }
  });

  test("text on a colour is the better readable of black and white", () => {
    expect([readableOn("#ffffff"), readableOn("#000000"), readableOn("#3f82bd"), readableOn("#8a4f9e"), readableOn("rgb(1 2 3)")]).toEqual(["#000000", "#ffffff", "#000000", "#ffffff", "#000000"]);
  });
});
