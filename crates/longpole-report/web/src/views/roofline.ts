/** Each operator beside the least time it could take: a plot and a table. */
import type { Context } from "../context";
import type { Roofline } from "../documents";
import { none, section } from "../parts";
import { type Column, nameCell, table } from "../table";
import { type Child, h, s, setText } from "../text";
import { bytes, count, decimal, flopRate, flops, MISSING, percents, plural, rate, time } from "../units";
import { facts } from "./header";
import { filled, overlapNote } from "./tables";

type Row = Roofline["rows"][number];

const UNKNOWN: Record<string, string> = {
  no_operator: "no operator owns it",
  no_formula: "no formula for it",
  no_shapes: "shapes not recorded",
  unreadable_shapes: "shapes not as expected",
  unknown_type: "element type not recorded or not known",
  missing_argument: "an argument not recorded",
  data_dependent: "depends on the data",
  too_large: "impossibly large",
  link_transfer: "limited by the link",
  communication: "limited by the network",
  counted_inside: "counted inside it",
};
const unknown = (code: string): string => (Object.hasOwn(UNKNOWN, code) ? (UNKNOWN[code] as string) : code.replaceAll("_", " "));

const FASTER: Record<string, string> = { cache: ", from cache", memory: ", partly from cache", compute: ", above peak" };

function boundBy(row: Row): string {
  if (row.unknown !== null) return `? ${unknown(row.unknown)}`;
  if (row.verdict === null) return "";
  return `${row.verdict.replace("_bound", "")}${row.faster_than === null ? "" : (FASTER[row.faster_than] ?? "")}`;
}

/** Shapes as the terminal has them: `1x1024, 1024x1024`; what has none (scalars) is left out. Texts of another form stay as they are. */
export function shapes(text: string | null): string | null {
  if (text === null) return null;
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return text;
  }
  const show = (one: unknown): string | null => {
    if (!Array.isArray(one)) return null;
    if (one.every((size) => typeof size === "number")) return one.length === 0 ? "" : one.join("x");
    const parts = one.map(show);
    return parts.includes(null) ? null : `(${parts.filter((part) => part !== "").join(", ")})`;
  };
  if (!Array.isArray(list)) return text;
  const parts = list.map(show);
  return parts.includes(null) ? text : parts.filter((part) => part !== "").join(", ");
}

interface Point {
  row: Row;
  intensity: number;
  rate: number;
}

const W = 720;
const H = 380;
const LEFT = 66;
const RIGHT = 16;
const TOP = 16;
const BOTTOM = 46;
/** More points than this would only hide each other; the table has all rows. */
const MOST_POINTS = 300;

const MARKS: Record<string, string> = { memory_bound: "M0-6L6 0 0 6-6 0Z", compute_bound: "M-5-5H5V5H-5Z", launch_bound: "M0-6L6 5H-6Z" };
const BOUND_NAMES: Record<string, string> = { memory_bound: "memory bound", compute_bound: "compute bound", launch_bound: "launch bound" };

function ticks(low: number, high: number): number[] {
  const list: number[] = [];
  const from = Math.ceil(Math.log10(low));
  const to = Math.floor(Math.log10(high));
  const every = Math.max(1, Math.ceil((to - from) / 8));
  for (let power = from; power <= to; power += every) list.push(10 ** power);
  return list;
}

/** Up to three roofs: the types that the most time is computed in. */
function roofs(document: Roofline): [string, number][] {
  const peaks = document.peaks;
  if (peaks === null) return [];
  const weight = new Map<string, number>();
  for (const row of document.rows) if (row.peak !== null) weight.set(row.peak, (weight.get(row.peak) ?? 0) + row.device_ns);
  return [...weight]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
    .flatMap(([name]) => (peaks.flops_per_s[name] === undefined ? [] : [[name, peaks.flops_per_s[name] as number] as [string, number]]))
    .sort((a, b) => b[1] - a[1]);
}

export function points(rows: Row[]): Point[] {
  const list: Point[] = [];
  for (const row of rows) {
    if (
      row.flops_per_call === null ||
      row.bytes_per_call === null ||
      row.flops_per_s === null ||
      row.flops_per_call <= 0 ||
      row.bytes_per_call <= 0 ||
      row.flops_per_s <= 0
    )
      continue;
    list.push({ row, intensity: row.flops_per_call / row.bytes_per_call, rate: row.flops_per_s });
  }
  return list.sort((a, b) => b.row.device_ns - a.row.device_ns);
}

function plot(document: Roofline): Child {
  const peaks = document.peaks;
  const all = points(document.rows);
  if (peaks === null || all.length === 0) return null;
  const drawn = all.slice(0, MOST_POINTS);
  const lines = roofs(document);
  const top = Math.max(...lines.map(([, peak]) => peak), ...drawn.map((point) => point.rate)) * 2;
  const bottom = Math.min(...drawn.map((point) => point.rate)) / 2;
  const ridge = Math.max(...lines.map(([, peak]) => peak), 1) / peaks.memory_bytes_per_s;
  const left = Math.min(...drawn.map((point) => point.intensity), ridge) / 2;
  const right = Math.max(...drawn.map((point) => point.intensity), ridge) * 3;
  const scale = (value: number, low: number, high: number, from: number, to: number): number =>
    from + ((Math.log10(value) - Math.log10(low)) / (Math.log10(high) - Math.log10(low))) * (to - from);
  const x = (value: number): number => scale(value, left, right, LEFT, W - RIGHT);
  const y = (value: number): number => scale(value, bottom, top, H - BOTTOM, TOP);
  const svg = s("svg", {
    viewBox: `0 0 ${W} ${H}`,
    class: "plot",
    role: "group",
    "aria-label": "roofline: operations a second over operations a byte, both logarithmic",
  });
  for (const tick of ticks(left, right)) {
    svg.append(s("line", { class: "grid", x1: x(tick), x2: x(tick), y1: TOP, y2: H - BOTTOM }));
    svg.append(
      s(
        "text",
        { class: "tick", x: x(tick), y: H - BOTTOM + 16, "text-anchor": "middle" },
        tick >= 1 ? count(tick) : String(Number(tick.toPrecision(1))),
      ),
    );
  }
  for (const tick of ticks(bottom, top)) {
    svg.append(s("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(tick), y2: y(tick) }));
    svg.append(
      s("text", { class: "tick", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, flops(tick).replace(/\.00/, "").replace("FLOP", "")),
    );
  }
  svg.append(s("text", { class: "axis", x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, "FLOPs a byte"));
  svg.append(
    s(
      "text",
      { class: "axis", x: 12, y: (TOP + H - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TOP + H - BOTTOM) / 2})` },
      "FLOP/s",
    ),
  );
  for (const [i, [, peak]] of lines.entries()) {
    const corner = peak / peaks.memory_bytes_per_s;
    const start = Math.max(left, bottom / peaks.memory_bytes_per_s);
    svg.append(
      s("path", {
        class: `roof roof-${i}`,
        d: `M${x(start)} ${y(start * peaks.memory_bytes_per_s)}L${x(Math.min(corner, right))} ${y(Math.min(peak, right * peaks.memory_bytes_per_s))}${corner < right ? `L${x(right)} ${y(peak)}` : ""}`,
      }),
    );
  }
  const most = drawn[0]?.row.device_ns ?? 1;
  const told = h(
    "p",
    { class: "told", role: "status" },
    "focus or point at a mark to read it; arrow keys go from mark to mark, largest first",
  );
  const marks: SVGElement[] = [];
  const say = (point: Point): void =>
    setText(
      told,
      `${point.row.name}${point.row.shapes === null ? "" : ` ${shapes(point.row.shapes) ?? ""}`}: ${time(point.row.device_ns)} (${percents(point.row.share_fraction)} of busy), ` +
        `${flopRate(point.rate)} at ${decimal(point.intensity)} FLOPs a byte, ${point.row.time_over_floor === null ? "" : `${decimal(point.row.time_over_floor)} times its floor, `}${boundBy(point.row)} bound`,
    );
  for (const [i, point] of drawn.entries()) {
    const size = 0.55 + 1.45 * Math.sqrt(point.row.device_ns / most);
    const mark = s("path", {
      class: `point point-${point.row.verdict ?? "none"}`,
      d: MARKS[point.row.verdict ?? ""] ?? "M-4 0A4 4 0 1 0 4 0 4 4 0 1 0-4 0",
      transform: `translate(${x(point.intensity).toFixed(1)} ${y(point.rate).toFixed(1)}) scale(${size.toFixed(2)})`,
      tabindex: i === 0 ? "0" : "-1",
      role: "img",
      "aria-label": `${point.row.name}, ${time(point.row.device_ns)}, ${boundBy(point.row)}`,
      focus: () => say(point),
      pointerenter: () => say(point),
      keydown: (event: KeyboardEvent) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        const next = marks[i + step];
        if (next === undefined) return;
        mark.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      },
    });
    marks.push(mark);
  }
  // Small ones last, so that they stay visible.
  svg.append(...marks);
  for (const [name, peak] of lines)
    svg.append(s("text", { class: "roof-name", x: W - RIGHT - 4, y: y(peak) - 6, "text-anchor": "end" }, `${name} ${flopRate(peak)}`));
  const slope = Math.max(left, bottom / peaks.memory_bytes_per_s);
  const [fromX, fromY] = [x(slope), y(slope * peaks.memory_bytes_per_s)];
  const angle = (Math.atan2(y(slope * 10 * peaks.memory_bytes_per_s) - fromY, x(slope * 10) - fromX) * 180) / Math.PI;
  svg.append(
    s(
      "text",
      { class: "roof-name", x: fromX + 8, y: fromY - 7, transform: `rotate(${angle.toFixed(1)} ${fromX.toFixed(1)} ${fromY.toFixed(1)})` },
      `memory ${rate(peaks.memory_bytes_per_s)}`,
    ),
  );
  const verdicts = [...new Set(drawn.map((point) => point.row.verdict))].filter((one) => one !== null);
  const key = h(
    "ul",
    { class: "legend plot-legend" },
    verdicts.map((one) =>
      h(
        "li",
        {},
        s(
          "svg",
          { viewBox: "-8 -8 16 16", class: "plot-key", "aria-hidden": "true" },
          s("path", { class: `point point-${one}`, d: MARKS[one] ?? "" }),
        ),
        BOUND_NAMES[one] ?? one,
      ),
    ),
    h("li", { class: "aside" }, "area: time"),
  );
  return h(
    "figure",
    { class: "roofline-figure" },
    h("div", { class: "plot-box" }, svg),
    key,
    told,
    all.length > drawn.length
      ? h("p", { class: "aside" }, `the ${count(drawn.length)} points with most time of ${count(all.length)}; the table has all rows`)
      : null,
  );
}

export function roofline(context: Context): HTMLElement | null {
  const document = context.documents.roofline;
  if (document === undefined) return null;
  const { peaks, rows } = document;
  if (rows.length === 0)
    return section("roofline", "Roofline", none("No device work was recorded, so there is nothing to hold against the device's peaks."));
  const columns: Column<Row>[] = [
    { key: "name", label: "operator", kind: "name", value: (row) => row.name, show: (row) => nameCell(row.name, 32) },
    {
      key: "shapes",
      label: "input shapes",
      kind: "name",
      value: (row) => shapes(row.shapes),
      show: (row) => nameCell(shapes(row.shapes) ?? MISSING, 30),
    },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls },
    { key: "time", label: "time", kind: "time", scale: "time", value: (row) => row.device_ns, total: document.busy_ns },
    { key: "share", label: "share", kind: "percent", value: (row) => row.share_fraction, bar: true, title: "of busy" },
    {
      key: "floor",
      label: "floor",
      kind: "time",
      scale: "time",
      value: (row) => row.floor_ns,
      total: document.floor_ns,
      title: "the least time that the bytes and the arithmetic take",
    },
    {
      key: "above",
      label: "above",
      kind: "time",
      scale: "time",
      value: (row) => row.above_floor_ns,
      total: document.above_floor_ns,
      title: "time above the floor: what a perfect kernel would win",
    },
    { key: "ratio", label: "time/floor", kind: "decimal", value: (row) => row.time_over_floor },
    { key: "bound", label: "bound by", kind: "text", value: boundBy },
    { key: "flops", label: "FLOPs/call", kind: "flops", value: (row) => row.flops_per_call },
    { key: "bytes", label: "bytes/call", kind: "bytes", value: (row) => row.bytes_per_call },
    { key: "flop_rate", label: "FLOP rate", kind: "flop_rate", value: (row) => row.flops_per_s },
    { key: "byte_rate", label: "byte rate", kind: "rate", value: (row) => row.bytes_per_s },
    { key: "dtype", label: "type", kind: "text", value: (row) => row.dtype },
  ];
  const said: [string, Child][] = [];
  if (peaks !== null) {
    const used = [...new Set(rows.map((row) => row.peak).filter((one) => one !== null))];
    said.push([
      "device",
      `${peaks.name}: memory ${rate(peaks.memory_bytes_per_s)}${used.map((name) => `, ${name} ${flopRate(peaks.flops_per_s[name])}`).join("")}${peaks.cache_bytes === null ? "" : `, cache ${bytes(peaks.cache_bytes)}`} (${peaks.source})`,
    ]);
  } else {
    said.push(["device", document.no_peaks ?? "its peaks are not known, so there are no floors"]);
  }
  if (document.floor_ns !== null && document.above_floor_ns !== null) {
    const share = document.busy_ns > 0 ? ` (${percents(document.above_floor_ns / document.busy_ns)} of busy)` : "";
    said.push([
      "floor",
      `${time(document.floor_ns)} for what is known; ${time(document.above_floor_ns)} above it${share} is the most that faster kernels could win`,
    ]);
  }
  if (document.unknown.length > 0) {
    said.push([
      "not known",
      document.unknown.map((one) => `${time(one.device_ns)} ${unknown(one.reason)} (${plural(one.rows, "row", "rows")})`).join("; "),
    ]);
  }
  return section(
    "roofline",
    "Roofline",
    h(
      "p",
      { class: "lead" },
      h("strong", {}, time(document.busy_ns)),
      " busy",
      document.covered_fraction === null ? null : `, the work of ${percents(document.covered_fraction)} of it is known`,
    ),
    facts(said),
    plot(document),
    table({
      caption: "operators against their floors",
      noun: ["row", "rows"],
      rows,
      columns: filled(rows, columns),
      first: 12,
      filter: (row) => [row.name, shapes(row.shapes), boundBy(row), row.kernel],
      cut: context.cut("roofline.rows"),
    }),
    overlapNote(
      rows.reduce((sum, row) => sum + row.device_ns, 0),
      document.busy_ns,
      "busy",
    ),
  );
}
