import { describe, expect, test } from "vitest";
import { key } from "../../src/canvas/input";
import { DamagedPage, Model } from "../../src/canvas/model";
import { TimelineState, type Change } from "../../src/canvas/state";
import { sharedWindow } from "../../src/canvas/window";
import { makeReport, makeRun, makeTimeline, Packer } from "./synthetic";

function opened(kept = 0.5) {
  const { report, bytes } = makeRun({ window_ns: 1e8, devices: 2, streams: 2, threads: 2, kernels: 200, kept, seed: 5 });
  const changes: Change[] = [];
  const model = new Model(report.timeline!, bytes);
  const state = new TimelineState(model, (change) => changes.push(change));
  const asked: string[] = [];
  const press = (...keys: string[]) => keys.map((one) => key(state, { keysList: () => asked.push("keys"), search: () => asked.push("search") }, one, false));
  return { report, bytes, model, state, changes, press, asked };
}

describe("keys", () => {
  test("begin at the first stream, walk over its events, zoom to one and follow it to its launch and back", () => {
    const { model, state, press, changes } = opened();
    expect(model.lanes[state.lane]!.lane.kind).toBe("stream");
    press("n");
    expect(state.selected!.at).toBe(0);
    press("n", "n", "p");
    expect(state.selected!.at).toBe(1);
    press("Enter");
    const { start_ns, end_ns, launch } = model.facts(state.selected!);
    expect(state.view.a < start_ns && state.view.b > end_ns).toBe(true);
    expect(state.view.b - state.view.a).toBeLessThan(3 * Math.max(100, end_ns - start_ns));
    const kernel = state.selected!.event;
    press("l");
    expect(state.selected!.event).toBe(launch);
    expect(state.selected!.lane.lane.kind).toBe("calls");
    press("l");
    expect([...model.launchedBy(launch!)]).toContain(kernel);
    expect(state.selected!.event).toBe(model.launchedBy(launch!)[0]);
    press("Escape");
    expect(state.selected).toBeNull();
    expect(changes.at(-1)!.say).toBe("nothing chosen");
  });

  test("pan, zoom and Home keep the view in the window", () => {
    const { state, press } = opened();
    press("+", "+", "+");
    const span = state.view.b - state.view.a;
    expect(span).toBeCloseTo(1e8 / 1.5 ** 3, 0);
    press("ArrowRight");
    for (let k = 0; k < 50; k++) press("ArrowLeft");
    expect(state.view.a).toBe(0);
    expect(state.view.b).toBeCloseTo(span, 0);
    press("-", "_", "=", "Home");
    expect(state.view).toEqual({ a: 0, b: 1e8 });
  });

  test("lanes: those in sight one by one, folded groups passed over, small ones shown small", () => {
    const { state, press, model } = opened();
    const first = state.lane;
    press("ArrowUp");
    expect(state.lane).toBe(first - 1);
    press("g");
    const group = state.groupOf(first - 1);
    expect(state.foldedGroups.has(group)).toBe(true);
    press("ArrowDown");
    expect(state.groupOf(state.lane)).not.toBe(group);
    // Choosing what is hidden unfolds it.
    state.select(model.lanes[first - 1]!.lane.first);
    expect(state.foldedGroups.size).toBe(0);
    press("s");
    expect(state.smallLanes.has(first - 1)).toBe(true);
    for (let k = 0; k < 99; k++) press("ArrowDown");
    expect(state.lane).toBe(model.lanes.length - 1);
  });

  test("m measures the view; ? and / ask for the list and the search; other keys are left to the page", () => {
    const { state, press, asked } = opened();
    expect(press("m", "?", "/", "x", "Tab", "toString")).toEqual([true, true, true, false, false, false]);
    expect(state.range).toEqual({ a: 0, b: 1e8 });
    expect(asked).toEqual(["keys", "search"]);
  });
});

test("a search chooses what it finds, one after the other, around the window", () => {
  const { state, model } = opened();
  state.search("norm_kernel_1");
  const seen: number[] = [];
  for (let k = 0; k < state.found!.count; k++) {
    state.stepFound(1);
    seen.push(state.selected!.event);
    expect(model.name(model.facts(state.selected!).name)).toContain("norm_kernel_1");
  }
  expect(new Set(seen).size).toBe(state.found!.count);
  state.stepFound(1);
  expect(state.selected!.event).toBe(seen[0]);
  state.search("");
  expect(state.found).toBeNull();
});

describe("moments", () => {
  test("with an event: it is chosen, its lane unfolded, the view around the moment", () => {
    const { state, model } = opened();
    const stream = model.lanes.find(({ lane }) => lane.kind === "stream")!;
    state.toggleGroup(state.groupOf(stream.index));
    const event = stream.lane.first + 3;
    const { start_ns, end_ns } = model.facts(model.find(event)!);
    state.show({ of: "kernel:x", label: "its longest kernel", start_ns, end_ns, lane: stream.index, event });
    expect(state.selected!.event).toBe(event);
    expect(state.foldedGroups.size).toBe(0);
    expect(state.view.a <= start_ns && state.view.b >= end_ns).toBe(true);
    expect(state.flash).toEqual({ a: start_ns, b: end_ns, lane: stream.index });
  });

  test("without one, or of lanes and events that are not there: the time alone", () => {
    const { state } = opened();
    const before = state.lane;
    state.show({ of: "cause:x", label: "", start_ns: 5e7, end_ns: 5e7 + 10, lane: 999, event: 1e9 });
    expect(state.selected).toBeNull();
    expect(state.lane).toBe(before);
    expect(state.flash).toEqual({ a: 5e7, b: 5e7 + 10, lane: null });
    expect(state.view.a < 5e7 && state.view.b > 5e7 + 10).toBe(true);
    expect(state.range!.a <= 5e7 && state.range!.b >= 5e7 + 10).toBe(true);
  });
});

test("ranges are put in order and cut to the window", () => {
  const { state } = opened();
  state.setRange({ a: 2e8, b: -5 });
  expect(state.range).toEqual({ a: 0, b: 1e8 });
});

test("damaged pages are told, not shown", () => {
  const { report, bytes } = makeRun({ window_ns: 1e7, devices: 1, streams: 1, threads: 1, kernels: 20, kept: 1 });
  const timeline = report.timeline!;
  const stream = timeline.lanes.find(({ kind }) => kind === "stream")!;
  expect(() => new Model({ ...timeline, lanes: timeline.lanes.slice(1) }, bytes)).toThrow(DamagedPage);
  const broken = (change: object) => () => new Model({ ...timeline, lanes: [{ ...stream, first: 0, ...change }] }, bytes).lanes[0]!.events();
  expect(broken({})).not.toThrow();
  expect(broken({ events: { ...stream.events, start: { ...stream.events.start, at: bytes.length } } })).toThrow();
  expect(broken({ events: { ...stream.events, n: stream.events.n + 1 } })).toThrow(DamagedPage);
});

test("a lane without events shares its number with the next one", () => {
  const packer = new Packer();
  const lane = { kind: "stream" as const, group: "GPU 0", title: "stream" };
  const timeline = makeTimeline(packer, [0, 10], [{ name: "k", family: 0 }], ["other"], [{ ...lane, events: [] }, { ...lane, events: [{ start: 1, dur: 2, name: 0 }] }, { ...lane, events: [] }]);
  const model = new Model(timeline, packer.done());
  expect(model.find(0)!.lane.index).toBe(1);
  expect(model.find(1)).toBeNull();
});

test("the window is shared by report, and nobody hears of what did not change", () => {
  const report = makeReport(null);
  const heard: unknown[] = [];
  sharedWindow(report).listen((view, by) => heard.push([view, by]));
  const me = {};
  sharedWindow(report).set({ a: 1, b: 2 }, me);
  sharedWindow(report).set({ a: 1, b: 2 }, me);
  expect(heard).toEqual([[{ a: 1, b: 2 }, me]]);
  expect(sharedWindow(makeReport(null)).view).toBeNull();
});
