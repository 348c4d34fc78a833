/** The first section: where the time of the run went, and the report of five lines. */
import type { Context } from "../context";
import type { Triage } from "../documents";
import { details, none, prose, section, type Segment, stack } from "../parts";
import { table } from "../table";
import { type Child, h } from "../text";
import { count, MISSING, percents, plural, time } from "../units";
import { facts, hardware, scope, source, trust } from "./header";

const look = (token: string, pattern: 0 | 1 | 2 | 3 | 4 | 5 | 6): Segment["look"] => ({ token, pattern, glyph: "" });
const KERNEL = look("--busy-kernel", 0);
const COPY = look("--busy-copy", 2);
const COMM = look("--busy-comm", 5);
const IDLE = look("--idle", 1);
const EDGE = look("--sunken", 0);

interface Times {
  gpu_busy_ns: number | null;
  gpu_idle_ns: number | null;
  kernel_busy_ns: number | null;
  exposed_copy_ns: number | null;
  exposed_comm_ns: number | null;
}

/** Parts of the wall that do not overlap: kernels first, then what ran with no kernel beside it, then nothing. */
export function parts(wall: number, of: Times): Segment[] {
  const busy = of.gpu_busy_ns ?? 0;
  const comm = of.exposed_comm_ns ?? 0;
  const copy = of.exposed_copy_ns ?? 0;
  const kernels = Math.max(0, (of.kernel_busy_ns ?? 0) - comm);
  const idle = of.gpu_idle_ns ?? 0;
  const segment = (label: string, value: number, looks: Segment["look"]): Segment => ({ label, value, look: looks, text: time(value) });
  return [
    segment("kernels", kernels, KERNEL),
    segment("communication alone", comm, COMM),
    segment("copies and fills alone", copy, COPY),
    segment("other device work", Math.max(0, busy - kernels - comm - copy), look("--family-other", 3)),
    segment("idle", idle, IDLE),
    segment("outside of device work", Math.max(0, wall - busy - idle), EDGE),
  ];
}

function bars(triage: Triage): Child {
  const { totals } = triage;
  if (totals.wall_ns === null) return none("The source holds totals only, not when anything ran: wall, busy and idle time are unknown.");
  if (totals.gpu_busy_ns === null) return none("No device activity was recorded: whether the device was busy cannot be known.");
  const wall = totals.wall_ns;
  if (totals.devices.length <= 1) return stack("wall time", parts(wall, totals), wall, "wall");
  return totals.devices.map((device) => {
    const name = `GPU ${device.id ?? "?"}${device.rank === null || device.rank === 0 ? "" : ` of rank ${device.rank}`}`;
    return h("div", {}, h("h3", {}, name), stack(`wall time of ${name}`, parts(wall, device), wall, "wall"));
  });
}

function figuresOf(triage: Triage): [string, Child, Child][] {
  const { totals } = triage;
  const busy = totals.gpu_busy_ns;
  const devices = totals.devices.length > 1 ? `, summed over ${totals.devices.length} devices` : "";
  const ofBusy = (value: number | null): string =>
    value === null || busy === null || busy === 0 ? "" : `${percents(value / busy)} of busy`;
  const exposed = (value: number | null, beside: string): string =>
    value === null ? "" : `${time(value)} of it exposed (no ${beside} running)`;
  const join = (...texts: (string | false)[]): string => texts.filter((text) => text !== false && text !== "").join(" \u00b7 ");
  const rows: [string, Child, Child][] = [];
  if (totals.wall_ns !== null)
    rows.push(["wall", time(totals.wall_ns), totals.host_ops === null ? "" : plural(totals.host_ops, "operator call", "operator calls")]);
  if (totals.cuda_ns !== undefined) {
    const calls =
      totals.device_sums?.reduce<number | null>((sum, one) => (sum === null || one.calls === null ? null : sum + one.calls), 0) ?? null;
    rows.push(["CUDA", time(totals.cuda_ns), calls === null ? "calls not counted" : `in ${plural(calls, "call", "calls")}`]);
    if ((totals.device_sums?.length ?? 0) > 1) {
      for (const one of totals.device_sums ?? [])
        rows.push([`device ${one.device ?? "?"}`, time(one.cuda_ns), one.calls === null ? "" : `in ${plural(one.calls, "call", "calls")}`]);
    }
  }
  if (busy === null) return rows;
  rows.push([
    "GPU busy",
    time(busy),
    join(
      `${percents(totals.gpu_busy_fraction)} of wall${devices}`,
      totals.launches !== null && plural(totals.launches, "launch", "launches"),
    ),
  ]);
  rows.push(["GPU idle", time(totals.gpu_idle_ns), `between the first and the last device work${devices}`]);
  if ((totals.gpu_outside_scope_ns ?? 0) > 0)
    rows.push(["GPU other", time(totals.gpu_outside_scope_ns), "with work from outside the scope"]);
  rows.push([
    "kernels",
    time(totals.kernel_busy_ns),
    join(ofBusy(totals.kernel_busy_ns), totals.kernels !== null && plural(totals.kernels, "kernel", "kernels")),
  ]);
  if ((totals.memcpys ?? 0) + (totals.memsets ?? 0) > 0) {
    rows.push([
      "copies",
      time(totals.copy_busy_ns),
      join(
        ofBusy(totals.copy_busy_ns),
        `${count(totals.memcpys)} copies`,
        `${count(totals.memsets)} fills`,
        exposed(totals.exposed_copy_ns, "kernel"),
      ),
    ]);
  }
  if ((totals.comm_busy_ns ?? 0) > 0)
    rows.push([
      "communication",
      time(totals.comm_busy_ns),
      join(ofBusy(totals.comm_busy_ns), exposed(totals.exposed_comm_ns, "other kernel")),
    ]);
  return rows;
}

function totalsTable(triage: Triage): Child {
  const rows = figuresOf(triage);
  if (rows.length === 0) return null;
  return h(
    "table",
    { class: "totals" },
    h("caption", { class: "hidden" }, "totals"),
    h(
      "tbody",
      {},
      rows.map(([label, value, aside]) =>
        h("tr", {}, h("th", { scope: "row" }, label), h("td", { class: "number" }, value), h("td", { class: "aside" }, aside)),
      ),
    ),
  );
}

function fiveLines(triage: Triage): HTMLElement {
  const { report } = triage;
  const lines: [string, string, boolean][] = [
    ["Workload", report.workload, false],
    ["Hardware", report.hardware, false],
    ["Top CUDA time", report.top_cuda_time, false],
    ["Top CPU / orchestration cost", report.top_host_cost, false],
    ["Next experiment", report.next_experiment, true],
  ];
  return h(
    "dl",
    { class: "five" },
    lines.map(([head, text, strong]) =>
      h("div", { class: strong ? "next" : null }, h("dt", {}, head), h("dd", {}, text === "" ? MISSING : prose(text))),
    ),
  );
}

/** Every list that is shorter in the page than in the documents. */
export function leftOut(context: Context): Child {
  const { cuts } = context.report;
  if (cuts.length === 0) return null;
  return details(
    `left out to keep the page small: ${plural(cuts.length, "list", "lists")}`,
    false,
    table({
      caption: "lists that are shorter here",
      noun: ["list", "lists"],
      rows: cuts,
      columns: [
        { key: "list", label: "list", kind: "name", value: (row) => row.list },
        { key: "kept", label: "kept", kind: "count", value: (row) => row.kept },
        { key: "of", label: "of", kind: "count", value: (row) => row.of },
      ],
    }),
    h("p", { class: "aside" }, "the commands themselves, with --json, give all of them"),
  );
}

export function summary(context: Context): HTMLElement {
  const triage = context.documents.triage ?? context.documents.sums;
  if (triage === undefined) return section("summary", "Summary", none("This report holds no first page of a trace."));
  const inScope = scope(triage.scope);
  return section(
    "summary",
    context.report.kind === "trace_compare" ? `Summary ${context.before === null ? "before" : "after"}` : "Summary",
    fiveLines(triage),
    h(
      "div",
      { class: "two" },
      h("div", {}, h("h3", {}, "Wall time of the GPU"), bars(triage)),
      h("div", {}, h("h3", {}, "Totals"), totalsTable(triage)),
    ),
    triage.host_clock === null || triage.host_clock === undefined ? null : h("p", { class: "aside" }, `Note: ${triage.host_clock.note}`),
    trust(triage.trust),
    facts([
      ["source", source(triage.source)],
      ...(inScope === null ? [] : [["scope", inScope] as [string, Child]]),
      ["hardware", hardware(triage.hardware)],
    ]),
    leftOut(context),
  );
}
