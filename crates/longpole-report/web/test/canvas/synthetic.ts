/** Reports made for tests: streams, lanes and levels as `data.ts` says, from small to huge. */

import type { Curve, EventColumns, Icicle, Lane, LaneKind, Level, Report, Stream, Timeline } from "../../src/data";

/** Small generator of numbers that are the same in each run (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Packer {
  private bytes = new Uint8Array(1 << 16);
  private length = 0;

  put(values: ArrayLike<number>, as: Stream["as"]): Stream {
    const at = this.length;
    let before = 0;
    for (let i = 0; i < values.length; i++) {
      let value = as === "delta" ? values[i]! - before : values[i]!;
      before = values[i]!;
      if (value < 0 || !Number.isInteger(value)) throw new Error(`${value} cannot be packed`);
      if (this.length + 10 > this.bytes.length) {
        const wider = new Uint8Array(this.bytes.length * 2);
        wider.set(this.bytes);
        this.bytes = wider;
      }
      while (value >= 128) {
        this.bytes[this.length++] = (value % 128) + 128;
        value = Math.floor(value / 128);
      }
      this.bytes[this.length++] = value;
    }
    return { at, bytes: this.length - at, n: values.length, as };
  }

  done(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}

export interface Event {
  start: number;
  dur: number;
  name: number;
  row?: number;
  launch?: number;
  owner?: number;
  detail?: number;
}

export function packEvents(packer: Packer, events: Event[]): EventColumns {
  const optional = (key: "row" | "launch" | "owner" | "detail") =>
    events.some((event) => event[key] !== undefined) ? packer.put(events.map((event) => event[key] ?? 0), "varint") : null;
  return {
    n: events.length,
    start: packer.put(events.map(({ start }) => start), "delta"),
    dur: packer.put(events.map(({ dur }) => dur), "varint"),
    name: packer.put(events.map(({ name }) => name), "varint"),
    row: optional("row"),
    launch: optional("launch"),
    owner: optional("owner"),
    detail: optional("detail"),
  };
}

export interface Block {
  start: number;
  end: number;
  row: number;
  count: number;
  busy: number;
  name: number;
}

/** Neighbours of a row that are nearer than `resolution` become one block; events that are longer stand alone. */
export function blocksOf(events: Event[], resolution: number): Block[] {
  const open = new Map<number, Block & { longest: number }>();
  const blocks: Block[] = [];
  for (const { start, dur, name, row = 0 } of events) {
    const block = open.get(row);
    const end = start + dur;
    if (block !== undefined && start - block.end < resolution && dur < resolution && block.end - block.start < resolution) {
      block.busy += Math.max(0, end - Math.max(start, block.end));
      block.end = Math.max(block.end, end);
      block.count += 1;
      if (dur > block.longest) Object.assign(block, { name, longest: dur });
    } else {
      const made = { start, end, row, count: 1, busy: dur, name, longest: dur };
      open.set(row, made);
      blocks.push(made);
    }
  }
  return blocks;
}

export function packLevel(packer: Packer, blocks: Block[], resolution_ns: number, rows: boolean): Level {
  return {
    resolution_ns,
    n: blocks.length,
    start: packer.put(blocks.map(({ start }) => start), "delta"),
    dur: packer.put(blocks.map(({ start, end }) => end - start), "varint"),
    row: rows ? packer.put(blocks.map(({ row }) => row), "varint") : null,
    count: packer.put(blocks.map(({ count }) => count), "varint"),
    busy: packer.put(blocks.map(({ busy }) => busy), "varint"),
    name: packer.put(blocks.map(({ name }) => name), "varint"),
  };
}

export interface LaneWish {
  kind: LaneKind;
  group: string;
  title: string;
  rows?: number;
  events: Event[];
  /** Only the events that lie in one of these are kept. */
  complete?: [number, number][];
  /** Finest first. */
  resolutions?: number[];
}

export function makeTimeline(packer: Packer, span: [number, number], names: { name: string; family: number }[], families: string[], wishes: LaneWish[], details: string[] = [""]): Timeline {
  let first = 0;
  let total = 0;
  const lanes = wishes.map((wish): Lane => {
    const { complete } = wish;
    const kept = complete === undefined ? wish.events : wish.events.filter(({ start, dur }) => complete.some(([from, to]) => start <= to && start + dur >= from));
    const lane: Lane = {
      kind: wish.kind,
      group: wish.group,
      title: wish.title,
      rows: wish.rows ?? 1,
      first,
      total: wish.events.length,
      events: packEvents(packer, kept),
      complete: complete ?? [span],
      levels: (wish.resolutions ?? []).map((resolution) => packLevel(packer, blocksOf(wish.events, resolution), resolution, (wish.rows ?? 1) > 1)),
    };
    first += kept.length;
    total += wish.events.length;
    return lane;
  });
  return {
    start_ns: span[0],
    end_ns: span[1],
    names: names.map(({ name }) => name),
    name_family: names.map(({ family }) => family),
    families,
    details,
    lanes,
    events_total: total,
    events_kept: first,
  };
}

export function makeReport(timeline: Timeline | null, icicle: Icicle | null = null, curves: Curve[] = []): Report {
  return {
    schema: "longpole.report/1",
    kind: "trace",
    title: "made for a test",
    made_by: "longpole test",
    documents: {},
    before: null,
    cuts: [],
    timeline,
    icicle,
    curves,
    moments: [],
  };
}

export const FAMILIES = ["gemm/gemv", "attention", "norm", "elementwise", "copy/cast", "gather/scatter", "reduction", "softmax/sampling", "communication", "memcpy", "memset", "other"];
const CAUSES = ["blocked_in_sync", "dispatch", "python", "launch_latency", "dependency", "nothing_recorded"];

export interface Size {
  /** Length of the window. */
  window_ns: number;
  devices: number;
  streams: number;
  threads: number;
  /** Kernels of each stream. */
  kernels: number;
  /** Share of each stream's window in which every event is kept. */
  kept: number;
  seed?: number;
}

/** A run of steps: threads launch through nested operators, streams work, idle gaps between. */
export function makeRun(size: Size): { report: Report; bytes: Uint8Array } {
  const next = random(size.seed ?? 1);
  const packer = new Packer();
  const names: { name: string; family: number }[] = [];
  const name = (text: string, family: number) => names.push({ name: text, family }) - 1;
  const kernels = FAMILIES.flatMap((family, f) => Array.from({ length: 4 }, (_, k) => name(`void ns::${family.replace(/\W/g, "_")}_kernel_${k}<float, ${k}, std::array<char*, 3ul>>(int, ns::Args<float>)`, f)));
  const ops = ["aten::linear", "aten::addmm", "aten::mm", "vllm::attention", "aten::copy_"].map((text) => name(text, -1));
  const calls = ["cudaLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync"].map((text) => name(text, -1));
  const steps = Array.from({ length: 20 }, (_, k) => name(`step ${k}`, -1));
  const ranges = ["execute_model", "prepare_inputs", "sample"].map((text) => name(text, -1));
  const causes = CAUSES.map((text) => name(text, -1));
  const pick = (from: number[]) => from[Math.floor(next() * from.length)]!;
  const { window_ns } = size;
  const wishes: LaneWish[] = [];
  const resolutions = (events: number) => {
    const found: number[] = [];
    for (let resolution = 1000; resolution < window_ns / 500; resolution *= 4) found.push(resolution);
    return events > 4000 || size.kept < 1 ? found : [];
  };
  const step = window_ns / steps.length;
  wishes.push({ kind: "steps", group: "run", title: "steps", events: steps.map((id, k) => ({ start: Math.round(k * step), dur: Math.round(step * 0.97), name: id })) });
  // Host first, so that calls have numbers before the kernels that name them.
  const launches: { event: number; end: number }[] = [];
  let events = steps.length;
  const per_thread = Math.ceil((size.kernels * size.streams * size.devices) / size.threads);
  for (let thread = 0; thread < size.threads; thread++) {
    const group = `process ${800 + thread} \u00b7 thread ${800 + thread} (python)`;
    const slot = window_ns / per_thread;
    const called: Event[] = [];
    const op: Event[] = [];
    for (let k = 0; k < per_thread; k++) {
      const start = Math.round(k * slot + next() * slot * 0.2);
      const dur = Math.max(1, Math.round(slot * 0.5));
      op.push({ start, dur, name: pick(ops), row: 0 });
      op.push({ start: start + Math.round(dur * 0.1), dur: Math.round(dur * 0.8), name: pick(ops), row: 1 });
      called.push({ start: start + Math.round(dur * 0.3), dur: Math.max(1, Math.round(dur * 0.2)), name: pick(calls) });
    }
    const complete = windows(window_ns, size.kept, next);
    wishes.push({ kind: "ranges", group, title: "ranges", events: steps.map((_, k) => ({ start: Math.round(k * step), dur: Math.round(step * 0.6), name: pick(ranges) })) });
    events += steps.length;
    wishes.push({ kind: "ops", group, title: "operators", rows: 2, events: op, complete, resolutions: resolutions(op.length) });
    events += op.filter(({ start, dur }) => complete.some(([from, to]) => start <= to && start + dur >= from)).length;
    wishes.push({ kind: "calls", group, title: "calls", events: called, complete, resolutions: resolutions(called.length) });
    for (const { start, dur } of called) if (complete.some(([from, to]) => start <= to && start + dur >= from)) launches.push({ event: events++, end: start + dur });
  }
  launches.sort((x, y) => x.end - y.end);
  for (let device = 0; device < size.devices; device++) {
    for (let stream = 0; stream < size.streams; stream++) {
      const slot = window_ns / size.kernels;
      const list: Event[] = [];
      const gaps: Event[] = [];
      let launch = 0;
      for (let k = 0; k < size.kernels; k++) {
        const start = Math.round(k * slot + next() * slot * 0.3);
        const dur = Math.max(1, Math.round(slot * (0.1 + 0.6 * next())));
        while (launch + 1 < launches.length && launches[launch + 1]!.end < start) launch += 1;
        list.push({ start, dur, name: pick(kernels), launch: launches.length > 0 ? launches[launch]!.event + 1 : 0, owner: 1 + pick(ops), detail: 1 });
        gaps.push({ start: start + dur, dur: Math.max(0, Math.round((k + 1) * slot) - start - dur), name: pick(causes) });
      }
      const complete = windows(window_ns, size.kept, next);
      const group = `GPU ${device} \u00b7 NVIDIA H200`;
      wishes.push({ kind: "stream", group, title: `stream ${7 + stream}`, events: list, complete, resolutions: resolutions(list.length) });
      if (stream === 0) wishes.push({ kind: "gaps", group, title: "idle by cause", events: gaps, complete, resolutions: resolutions(gaps.length) });
    }
  }
  const timeline = makeTimeline(packer, [0, window_ns], names, FAMILIES, wishes, ["", "grid 128 x 1 x 1 \u00b7 block 256 x 1 x 1 \u00b7 registers 64"]);
  const curves = [makeCurve(packer, "queue_depth", window_ns, next), makeCurve(packer, "memory_allocated", window_ns, next), makeCurve(packer, "memory_reserved", window_ns, next)];
  const report = makeReport(timeline, makeIcicle(next), curves);
  report.moments.push({ of: "cause:dispatch", label: "the largest gap of this cause", start_ns: Math.round(window_ns / 2), end_ns: Math.round(window_ns / 2) + 5000, lane: 1, event: null });
  return { report, bytes: packer.done() };
}

/** Windows that cover `share` of the whole, ascending. */
function windows(window_ns: number, share: number, next: () => number): [number, number][] {
  if (share >= 1) return [[0, window_ns]];
  const found: [number, number][] = [];
  const parts = 5;
  for (let k = 0; k < parts; k++) {
    const length = (window_ns / parts) * share;
    const from = Math.round((k * window_ns) / parts + next() * (window_ns / parts - length));
    found.push([from, Math.round(from + length)]);
  }
  return found;
}

export function makeCurve(packer: Packer, kind: Curve["kind"], window_ns: number, next: () => number): Curve {
  const n = 5000;
  const t = Array.from({ length: n }, (_, i) => Math.round((i * window_ns) / n));
  let value = 0;
  const v = t.map(() => (value = Math.max(0, value + Math.round((next() - 0.49) * (kind === "queue_depth" ? 20 : 4e8)))));
  return { kind, title: kind.replace("_", " "), device: 0, unit: kind === "queue_depth" ? "launches" : "bytes", t: packer.put(t, "delta"), v: packer.put(v, "varint") };
}

export function makeIcicle(next: () => number): Icicle {
  const icicle: Icicle = { parent: [], name: [], kind: [], host_ns: [], device_ns: [], calls: [] };
  const grow = (parent: number, depth: number, host: number, device: number): void => {
    const at = icicle.parent.length;
    const kind = depth === 0 ? "root" : depth === 1 ? "range" : depth < 5 ? "op" : "kernel";
    icicle.parent.push(parent);
    icicle.name.push(`${kind} ${at}`);
    icicle.kind.push(kind);
    icicle.host_ns.push(kind === "kernel" ? null : Math.round(host));
    icicle.device_ns.push(Math.round(device));
    icicle.calls.push(1 + Math.floor(next() * 50));
    if (kind === "kernel") return;
    const children = 2 + Math.floor(next() * 3);
    for (let k = 0; k < children; k++) grow(at, depth + 1, (host / children) * (0.6 + 0.4 * next()), device / children);
  };
  grow(-1, 0, 1e9, 8e8);
  return icicle;
}
