/**
 * The timeline's data, unpacked lane by lane when first looked at.
 *
 * Events are numbered over all lanes (`Lane.first` + position), so that one number names an event.
 */

import type { EventColumns, Lane, Level, Stream, Timeline } from "../data";
import { unpack } from "../decode";
import { lowerBound, makeSpans, type Spans } from "./spans";

/** Kept events of a lane. Columns that the lane lacks are `null`. */
export interface LaneEvents {
  spans: Spans;
  name: Uint32Array;
  /** 1 + event number of the launching call; 0: not known. */
  launch: Uint32Array | null;
  /** 1 + name of the operator or range it was launched in; 0: none. */
  owner: Uint32Array | null;
  detail: Uint32Array | null;
}

/** Blocks of one level. */
export interface LaneBlocks {
  resolution_ns: number;
  spans: Spans;
  count: Uint32Array;
  busy: Float64Array;
  name: Uint32Array;
}

/** What a damaged page says. */
export class DamagedPage extends Error {}

/** Small numbers, at half of the memory. */
function indices(bytes: Uint8Array, stream: Stream): Uint32Array {
  return new Uint32Array(unpack(bytes, stream));
}

export interface LaneModel {
  lane: Lane;
  index: number;
  rows: number;
  /** Whether every event of the lane is kept. */
  whole: boolean;
  /** Ends of `lane.complete`, to search in. */
  complete: { from: Float64Array; to: Float64Array };
  events(): LaneEvents;
  level(k: number): LaneBlocks;
}

/** An event looked up by number. */
export interface EventRef {
  event: number;
  lane: LaneModel;
  /** Position among the lane's events. */
  at: number;
}

/** What is known of one event. */
export interface EventFacts {
  name: number;
  start_ns: number;
  end_ns: number;
  row: number;
  launch: number | null;
  owner: number | null;
  detail: number;
}

export class Model {
  readonly lanes: LaneModel[];
  readonly start: number;
  readonly end: number;
  private launches: { at: Uint32Array; kernels: Uint32Array } | null = null;
  private readonly firsts: Float64Array;
  /** Numbers of events go up to here. */
  readonly events: number;

  constructor(
    readonly timeline: Timeline,
    bytes: Uint8Array,
    /** The window is at least this long: beside a longer one, both have one scale. */
    least_ns = 0,
  ) {
    this.start = timeline.start_ns;
    // A window of no length cannot be zoomed.
    this.end = timeline.start_ns + Math.max(timeline.end_ns - timeline.start_ns, least_ns, 1);
    this.lanes = timeline.lanes.map((lane, index) => openLane(lane, index, bytes));
    this.firsts = Float64Array.from(timeline.lanes, (lane) => lane.first);
    let events = 0;
    timeline.lanes.forEach((lane) => {
      if (lane.first !== events) throw new DamagedPage("the numbers of the page's events do not run on");
      events += lane.events.n;
    });
    this.events = events;
  }

  /** The event of this number, `null` when there is none. */
  find(event: number): EventRef | null {
    if (!Number.isInteger(event) || event < 0 || event >= this.events) return null;
    // Lanes without events share their neighbour's first number: the last lane that starts at or below is the one.
    const lane = this.lanes[lowerBound(this.firsts, event + 1) - 1];
    return lane === undefined ? null : { event, lane, at: event - lane.lane.first };
  }

  facts({ lane, at }: EventRef): EventFacts {
    const events = lane.events();
    const launch = events.launch?.[at] ?? 0;
    const owner = events.owner?.[at] ?? 0;
    return {
      name: events.name[at]!,
      start_ns: events.spans.start[at]!,
      end_ns: events.spans.end[at]!,
      row: events.spans.row?.[at] ?? 0,
      launch: launch > 0 && launch <= this.events ? launch - 1 : null,
      owner: owner > 0 ? owner - 1 : null,
      detail: events.detail?.[at] ?? 0,
    };
  }

  /** The events that the call `event` launched, by number. */
  launchedBy(event: number): Uint32Array {
    this.launches ??= this.invertLaunches();
    const { at, kernels } = this.launches;
    return kernels.subarray(at[event] ?? 0, at[event + 1] ?? 0);
  }

  /** Calls to the work they launched: positions by call, then a list. Made once, by counting. */
  private invertLaunches(): { at: Uint32Array; kernels: Uint32Array } {
    const at = new Uint32Array(this.events + 1);
    const columns = this.lanes.flatMap((lane) => {
      const launch = lane.lane.events.launch === null ? null : lane.events().launch;
      return launch === null ? [] : [{ first: lane.lane.first, launch }];
    });
    let links = 0;
    for (const { launch } of columns) {
      for (const call of launch) {
        if (call > 0 && call <= this.events) {
          at[call]!++;
          links += 1;
        }
      }
    }
    for (let i = 0; i < this.events; i++) at[i + 1]! += at[i]!;
    const next = at.slice();
    const kernels = new Uint32Array(links);
    for (const { first, launch } of columns) {
      launch.forEach((call, i) => {
        if (call > 0 && call <= this.events) kernels[next[call - 1]!++] = first + i;
      });
    }
    return { at, kernels };
  }

  name(index: number): string {
    return this.timeline.names[index] ?? "";
  }

  /** Number of the family, -1 when the name is of no device work. */
  family(name: number): number {
    return this.timeline.name_family[name] ?? -1;
  }
}

function openLane(lane: Lane, index: number, bytes: Uint8Array): LaneModel {
  const rows = Math.max(1, Math.floor(lane.rows) || 1);
  let events: LaneEvents | null = null;
  const levels: (LaneBlocks | undefined)[] = [];
  return {
    lane,
    index,
    rows,
    whole: lane.events.n >= lane.total,
    complete: { from: Float64Array.from(lane.complete, ([from]) => from), to: Float64Array.from(lane.complete, ([, to]) => to) },
    events: () => (events ??= openEvents(lane.events, rows, bytes)),
    level: (k) => (levels[k] ??= openLevel(lane.levels[k]!, rows, bytes)),
  };
}

function sized<T extends { length: number }>(column: T, n: number): T {
  if (column.length !== n) throw new DamagedPage("columns of one lane differ in length");
  return column;
}

function openEvents(columns: EventColumns, rows: number, bytes: Uint8Array): LaneEvents {
  const n = columns.n;
  const optional = (stream: EventColumns["row"]) => (stream === null ? null : sized(indices(bytes, stream), n));
  return {
    spans: makeSpans(sized(unpack(bytes, columns.start), n), sized(unpack(bytes, columns.dur), n), optional(columns.row), rows),
    name: sized(indices(bytes, columns.name), n),
    launch: optional(columns.launch),
    owner: optional(columns.owner),
    detail: optional(columns.detail),
  };
}

function openLevel(level: Level, rows: number, bytes: Uint8Array): LaneBlocks {
  const n = level.n;
  const row = level.row === null ? null : sized(indices(bytes, level.row), n);
  return {
    resolution_ns: level.resolution_ns,
    spans: makeSpans(sized(unpack(bytes, level.start), n), sized(unpack(bytes, level.dur), n), row, rows),
    count: sized(indices(bytes, level.count), n),
    busy: sized(unpack(bytes, level.busy), n),
    name: sized(indices(bytes, level.name), n),
  };
}
