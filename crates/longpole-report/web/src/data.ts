/**
 * What a page is given: the report as Rust writes it (`crates/longpole-report/src/html`). Times are integer nanoseconds since the
 * trace's first event, as the documents and `--time` count them, sizes integer bytes, shares 0..1; `null` is "not recorded", never zero.
 *
 * The page holds two texts, each base64 of a zlib stream: `<script type="text/plain" id="longpole-report">` is the JSON of
 * {@link Report}, and `id="longpole-events"` the bytes that every {@link Stream} points into. Names arrive as they were recorded
 * (redacted unless asked otherwise): the page shows them as text only, with control and bidirectional characters made visible.
 */

export interface Report {
  schema: "longpole.report/1";
  kind: "trace" | "trace_compare" | "ncu" | "ncu_compare" | "sums";
  title: string;
  /** The program and its version. */
  made_by: string;
  /** Documents as the commands' `--json` gives them (docs/schema), but for lists that `cuts` names. */
  documents: Documents;
  /** Of a comparison of traces: the triage of each side; `documents` then holds `diff` and the documents of AFTER. */
  before: Documents | null;
  /** Lists that were shortened to keep the page small; the rest is in the command's own `--json`. */
  cuts: { list: string; kept: number; of: number }[];
  timeline: Timeline | null;
  /** Of a comparison of traces: what ran when before. Absent in pages of other kinds. */
  before_timeline?: Timeline | null;
  icicle: Icicle | null;
  curves: Curve[];
  moments: Moment[];
}

/** Keys are names of commands; values follow docs/schema/longpole.KEY.1.schema.json. Absent: does not apply to this input. */
export interface Documents {
  triage?: any;
  steps?: any;
  idle?: any;
  roofline?: any;
  memory?: any;
  diff?: any;
  ncu?: any;
  ncu_compare?: any;
  sums?: any;
}

/** Numbers packed in the bytes of `longpole-events`, from byte `at` on. */
export interface Stream {
  at: number;
  bytes: number;
  n: number;
  /** `varint`: unsigned LEB128. `delta`: unsigned LEB128 of the difference to the value before (the first: to 0); values never fall. */
  as: "varint" | "delta";
}

export interface Timeline {
  /** The whole window. */
  start_ns: number;
  end_ns: number;
  /** Names by number. */
  names: string[];
  /** Of each name: a number into `families`, or -1 for what is no kernel, copy or fill. */
  name_family: number[];
  families: string[];
  /** Texts of details (grid, block, registers, bytes ...) by number; 0 is the empty one. */
  details: string[];
  /** In the order to be drawn from top to bottom; neighbours of equal `group` stand together. */
  lanes: Lane[];
  /** Events of all lanes in the trace and in the page; the page says so when they differ. An operator folded into its parent of the same name is none. */
  events_total: number;
  events_kept: number;
}

export type LaneKind = "steps" | "ranges" | "ops" | "calls" | "stream" | "gaps";

export interface Lane {
  kind: LaneKind;
  /** E.g. `GPU 0 · NVIDIA H200` or `process 812 · thread 812 (python)`. */
  group: string;
  /** E.g. `stream 7`, `operators`, `calls`, `idle by cause`. */
  title: string;
  /** Rows the lane needs: depth of nesting, or lanes that overlapping kernels are split on. At least 1. */
  rows: number;
  /** Number of the lane's first event; event numbers run on from lane to lane, over kept events. */
  first: number;
  /** Events of the lane in the trace. */
  total: number;
  /** Kept events, by start. */
  events: EventColumns;
  /** Windows [from, to] in which every event is kept, ascending. Outside of them only blocks of `levels` are drawn. */
  complete: [number, number][];
  /** Summaries, finest first. */
  levels: Level[];
}

export interface EventColumns {
  n: number;
  start: Stream;
  dur: Stream;
  /** Into `Timeline.names`. For gaps: the cause. */
  name: Stream;
  /** Row within the lane, from 0. Absent: all 0. */
  row: Stream | null;
  /** Of device work: 1 + event number of the call that launched it, 0 when unknown or not kept. */
  launch: Stream | null;
  /** Of device work: 1 + number of the name of the operator or range it was launched in, 0 for none. */
  owner: Stream | null;
  /** Into `Timeline.details`. */
  detail: Stream | null;
}

/**
 * Neighbouring events of a row put together as long as they lie within `resolution_ns` from first start to last end: a block of several
 * events is no longer than that, and one event alone may be. Sorted by start, then row. There are two blocks a row for each `resolution_ns` at most.
 */
export interface Level {
  resolution_ns: number;
  n: number;
  start: Stream;
  /** From the first event's start to the last one's end. */
  dur: Stream;
  row: Stream | null;
  /** Events in the block. */
  count: Stream;
  /** Time of the block that is covered by events. */
  busy: Stream;
  /** The name that covers most of it. */
  name: Stream;
}

/** A tree in preorder: ranges, the operators in them, and what these launched. Sums of a node include its children. */
export interface Icicle {
  parent: number[];
  name: string[];
  kind: ("root" | "range" | "op" | "call" | "kernel" | "rest")[];
  /** Host time (host extent of ranges and operators, all calls of them together). */
  host_ns: (number | null)[];
  /** Time of the device work launched within; a kernel's own. */
  device_ns: number[];
  calls: number[];
}

/** A quantity over time, shortened so that no peak is lost: within each bucket the least and the largest value are kept. */
export interface Curve {
  kind: "queue_depth" | "memory_allocated" | "memory_reserved";
  title: string;
  device: number | null;
  unit: "launches" | "bytes";
  /** The value holds from `t` until the next one. */
  t: Stream;
  v: Stream;
}

/** Where to look for something that the report names. */
export interface Moment {
  /** `smell:CODE:SUBJECT`, `cause:CODE`, `step:GROUP:NUMBER`, `kernel:NAME`, `op:NAME`, `range:NAME`. */
  of: string;
  /** E.g. `its longest kernel`, `the largest gap of this cause`. */
  label: string;
  start_ns: number;
  end_ns: number;
  /** Index into `Timeline.lanes`, and the event's number, when there is one in the page. */
  lane: number | null;
  event: number | null;
}
