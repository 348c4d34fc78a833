/** One kernel of a report of Nsight Compute: verdict, figures, stalls, suggestions, hottest places. */
import type { Ncu } from "../documents";
import { details, figures, type Figure, meter, swatch } from "../parts";
import { familyLook } from "../palette";
import { type Column, nameCell, table } from "../table";
import { type Child, h } from "../text";
import { bytes, clock, count, decimal, MISSING, percents, plural, rate, time, words } from "../units";
import { filled } from "./tables";

type Kernel = Ncu["kernels"][number];
type Hot = Kernel["hot"][number];
type Line = NonNullable<Kernel["lines"]>[number];

/** Percent as ncu gives it. */
const pct = (value: number | null | undefined): string => (value === null || value === undefined ? MISSING : percents(value / 100));
export const dims = (list: number[] | null): string => (list === null ? MISSING : list.map((n) => count(n)).join(" x "));
const address = (value: number): string => `0x${value.toString(16).padStart(4, "0")}`;
const base = (path: string): string => path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
const place = (file: string | null, line: number | null): string | null =>
  file === null ? null : `${base(file)}${line === null ? "" : `:${line}`}`;

/** A place by the file's own name; its folders on demand. */
function placeCell(file: string | null, line: number | null): Child {
  const short = place(file, line);
  return short === null || file === null ? MISSING : h("span", { title: `${file}${line === null ? "" : `:${line}`}` }, short);
}

const VERDICT_MARKS: Record<string, string> = {
  "too small": "\u25ab",
  "memory bound": "\u25c6",
  "compute bound": "\u25a0",
  "latency bound": "\u25b2",
  balanced: "=",
};
export function bound(verdict: string | null): HTMLElement {
  if (verdict === null) return h("span", { class: "bound" }, "its figures were not collected");
  return h(
    "span",
    { class: `bound bound-${verdict.replace(" ", "-")}` },
    h("span", { "aria-hidden": "true" }, `${VERDICT_MARKS[verdict] ?? ""} `),
    verdict,
  );
}

function throughput(kernel: Kernel): HTMLElement {
  const rows: [string, number | null, string][] = [
    [
      "DRAM",
      kernel.dram_pct,
      kernel.dram_bytes_per_s === null
        ? ""
        : `${rate(kernel.dram_bytes_per_s)} of ${rate(kernel.dram_peak_bytes_per_s)} \u00b7 ${bytes(kernel.dram_read_bytes)} read \u00b7 ${bytes(kernel.dram_write_bytes)} written`,
    ],
    ["memory", kernel.memory_pct, "busiest part of the memory system"],
    ["L1", kernel.l1_pct, kernel.l1_hit_pct === null ? "" : `hit ${pct(kernel.l1_hit_pct)}`],
    ["L2", kernel.l2_pct, kernel.l2_hit_pct === null ? "" : `hit ${pct(kernel.l2_hit_pct)}`],
    ["SM", kernel.sm_pct, kernel.ipc === null ? "" : `${decimal(kernel.ipc)} instructions a cycle`],
    [kernel.busiest_pipe === null ? "busiest pipe" : `pipe ${kernel.busiest_pipe}`, kernel.busiest_pipe_pct, "the busiest one"],
    ["tensor", kernel.tensor_pct, ""],
    [
      "issue",
      kernel.issue_active_fraction === null ? null : kernel.issue_active_fraction * 100,
      `of cycles; ${decimal(kernel.active_warps)} warps active, ${decimal(kernel.eligible_warps)} ready`,
    ],
  ];
  return bars("percent of peak", rows);
}

function bars(caption: string, rows: [string, number | null, string][]): HTMLElement {
  return h(
    "table",
    { class: "metrics" },
    h("caption", {}, caption),
    h(
      "tbody",
      {},
      rows
        .filter(([, value]) => value !== null)
        .map(([label, value, aside]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, label),
            h("td", {}, meter((value ?? 0) / 100, pct(value), label)),
            h("td", { class: "aside" }, aside),
          ),
        ),
    ),
  );
}

function occupancy(kernel: Kernel): HTMLElement {
  const limits = kernel.occupancy_limits.map((one) => `${one.resource} ${one.blocks_per_sm}`).join(", ");
  return h(
    "div",
    {},
    bars("occupancy", [
      [
        "theoretical",
        kernel.theoretical_occupancy_pct,
        kernel.occupancy_limiters.length === 0 ? "" : `limited by ${kernel.occupancy_limiters.join(" and ")}`,
      ],
      ["achieved", kernel.achieved_occupancy_pct, ""],
    ]),
    limits === "" ? null : h("p", { class: "aside" }, `blocks an SM can hold by: ${limits}`),
  );
}

function stalls(kernel: Kernel): Child {
  const listed = kernel.stalls.filter((stall) => (stall.share_fraction ?? 0) >= 0.01);
  if (listed.length === 0) return null;
  const rest = kernel.stalls.length - listed.length;
  return h(
    "table",
    { class: "metrics" },
    h(
      "caption",
      {},
      "stalls",
      kernel.warp_cycles_per_issue === null
        ? null
        : h("span", { class: "aside" }, ` ${decimal(kernel.warp_cycles_per_issue)} cycles from one instruction of a warp to its next`),
    ),
    h(
      "tbody",
      {},
      listed.map((stall) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, words(stall.reason)),
          h("td", {}, meter(stall.share_fraction, percents(stall.share_fraction), words(stall.reason))),
          h("td", { class: "number" }, decimal(stall.cycles_per_issue)),
          h("td", { class: "aside" }, stall.meaning),
        ),
      ),
      rest > 0 ? h("tr", {}, h("td", { colspan: "4", class: "aside" }, `and ${rest} more under 1 % each`)) : null,
    ),
  );
}

function rules(kernel: Kernel): Child {
  if (kernel.rules.length === 0) return null;
  const columns: Column<Kernel["rules"][number]>[] = [
    { key: "speedup", label: "at most", kind: "percent", value: (row) => (row.speedup_pct === null ? null : row.speedup_pct / 100) },
    {
      key: "scope",
      label: "of",
      kind: "text",
      value: (row) => (row.scope === "global" ? "the kernel" : row.scope === "local" ? "the part" : null),
    },
    {
      key: "title",
      label: "suggestion",
      kind: "prose",
      value: (row) => row.title,
      show: (row) => [h("strong", {}, row.title), row.related ? null : h("span", { class: "aside" }, " unrelated to the verdict")],
    },
    { key: "text", label: "what ncu says", kind: "prose", value: (row) => row.text },
  ];
  return [
    h("h4", {}, "Suggestions of ncu ", h("span", { class: "aside" }, "estimates are upper bounds and overlap: do not add them")),
    table({
      caption: "suggestions of ncu",
      noun: ["suggestion", "suggestions"],
      rows: kernel.rules,
      columns,
      first: 6,
      filter: (row) => [row.title, row.text],
    }),
  ];
}

function hot(kernel: Kernel): Child {
  if (kernel.samples === null || kernel.hot.length === 0) return null;
  const columns: Column<Hot>[] = [
    { key: "address", label: "address", kind: "text", value: (row) => row.address, show: (row) => h("code", {}, address(row.address)) },
    {
      key: "sass",
      label: "instruction",
      kind: "name",
      value: (row) => row.sass ?? row.mnemonic,
      show: (row) => h("code", {}, nameCell(row.sass ?? row.mnemonic ?? MISSING, 44)),
    },
    {
      key: "line",
      label: "line",
      kind: "text",
      value: (row) => (row.called_from === null ? place(row.file, row.line) : place(row.called_from.file, row.called_from.line)),
      show: (row) => (row.called_from === null ? placeCell(row.file, row.line) : placeCell(row.called_from.file, row.called_from.line)),
      title: "of inlined code: the line that calls it",
    },
    { key: "inlined", label: "inlined from", kind: "text", value: (row) => (row.called_from === null ? null : place(row.file, row.line)) },
    { key: "samples", label: "samples", kind: "count", value: (row) => row.samples },
    { key: "share", label: "share", kind: "percent", value: (row) => row.share_fraction, bar: true },
    { key: "stall", label: "top stall", kind: "text", value: (row) => (row.top_stall === null ? null : words(row.top_stall)) },
    {
      key: "waits",
      label: "waits for",
      kind: "text",
      value: (row) =>
        row.waits_for === null
          ? null
          : `${row.waits_for.sass ?? row.waits_for.mnemonic ?? row.waits_for.what} at ${address(row.waits_for.address)}`,
    },
    { key: "executed", label: "executed", kind: "count", value: (row) => row.executed },
  ];
  return [
    h(
      "h4",
      {},
      "Hottest instructions ",
      h(
        "span",
        { class: "aside" },
        `of ${plural(kernel.samples, "sample", "samples")}: a stall belongs to the instruction that uses the value`,
      ),
    ),
    kernel.samples < 100
      ? h("p", { class: "aside" }, "so few samples say little about single instructions: profile a longer run of the kernel")
      : null,
    table({
      caption: "hottest instructions",
      noun: ["instruction", "instructions"],
      rows: kernel.hot,
      columns: filled(kernel.hot, columns),
      first: 8,
      filter: (row) => [row.sass, row.mnemonic, place(row.file, row.line), row.top_stall],
    }),
  ];
}

function lines(kernel: Kernel): Child {
  const own = kernel.own_lines ?? kernel.lines ?? byLine(kernel.hot);
  if (own.length === 0) return null;
  const compiled =
    kernel.own_lines === null || kernel.lines === null || kernel.lines.length === 0 || kernel.lines.length === own.length
      ? null
      : kernel.lines;
  return [
    h(
      "h4",
      {},
      "Source lines ",
      h("span", { class: "aside" }, kernel.own_lines === null ? "as compiled" : "inlined code counts for the line that calls it"),
    ),
    lineTable("source lines by samples", own),
    compiled === null
      ? null
      : details("source lines as compiled, inlined code by itself", false, lineTable("source lines as compiled", compiled)),
  ];
}

function lineTable(caption: string, list: Line[]): HTMLElement {
  const columns: Column<Line>[] = [
    {
      key: "place",
      label: "line",
      kind: "text",
      value: (row) => place(row.file, row.line) ?? "no line is known",
      show: (row) => (row.file === null ? "no line is known" : placeCell(row.file, row.line)),
    },
    {
      key: "text",
      label: "source",
      kind: "text",
      value: (row) => row.text,
      show: (row) => (row.text === null ? MISSING : nameCell(row.text.trim(), 56)),
    },
    { key: "samples", label: "samples", kind: "count", value: (row) => row.samples },
    { key: "share", label: "share", kind: "percent", value: (row) => row.share_fraction, bar: true },
    { key: "stall", label: "top stall", kind: "text", value: (row) => (row.stalls[0] === undefined ? null : words(row.stalls[0].reason)) },
    { key: "instructions", label: "instructions", kind: "count", value: (row) => row.instructions },
    { key: "executed", label: "executed", kind: "count", value: (row) => row.executed },
  ];
  return table({
    caption,
    noun: ["line", "lines"],
    rows: list,
    columns: filled(list, columns),
    first: 8,
    filter: (row) => [place(row.file, row.line), row.text],
  });
}

/** Source lines out of the instructions with samples, where the report was made without those of the compiler. */
export function byLine(instructions: Hot[]): Line[] {
  const found = new Map<string, Line & { by: Map<string, number> }>();
  for (const one of instructions) {
    if (one.file === null) continue;
    const key = `${one.file}:${one.line ?? ""}`;
    const line = found.get(key) ?? {
      file: one.file,
      line: one.line,
      text: null,
      samples: 0,
      share_fraction: 0,
      stalls: [],
      instructions: 0,
      executed: null,
      by: new Map(),
    };
    line.samples += one.samples;
    line.share_fraction = (line.share_fraction ?? 0) + (one.share_fraction ?? 0);
    line.instructions += 1;
    for (const stall of one.stalls) line.by.set(stall.reason, (line.by.get(stall.reason) ?? 0) + stall.samples);
    found.set(key, line);
  }
  return [...found.values()]
    .map(({ by, ...line }) => ({
      ...line,
      stalls: [...by].sort((a, b) => b[1] - a[1]).map(([reason, samples]) => ({ reason, samples })) as Line["stalls"],
    }))
    .sort((a, b) => b.samples - a.samples);
}

function kernelFigures(kernel: Kernel): Figure[] {
  const shared = [
    kernel.shared_static_bytes ? `${bytes(kernel.shared_static_bytes)} static` : null,
    kernel.shared_dynamic_bytes ? `${bytes(kernel.shared_dynamic_bytes)} dynamic` : null,
    kernel.shared_driver_bytes ? `${bytes(kernel.shared_driver_bytes)} driver` : null,
  ].filter((one) => one !== null);
  return [
    {
      label: "time",
      value: time(kernel.duration_ns),
      aside: kernel.sm_clock_hz === null ? null : `SM ${clock(kernel.sm_clock_hz)}, memory ${clock(kernel.dram_clock_hz)}`,
    },
    {
      label: "grid",
      value: dims(kernel.grid),
      aside:
        kernel.waves_per_sm === null
          ? null
          : `${kernel.waves_per_sm < 0.01 ? kernel.waves_per_sm.toPrecision(2) : decimal(kernel.waves_per_sm)} waves on ${count(kernel.sm_count)} SMs`,
    },
    { label: "block", value: dims(kernel.block), aside: kernel.cluster_size === null ? null : `clusters of ${kernel.cluster_size}` },
    { label: "registers a thread", value: count(kernel.registers_per_thread) },
    { label: "shared a block", value: bytes(kernel.shared_bytes_per_block), aside: shared.join(", ") },
  ];
}

export function kernelView(kernel: Kernel, open: boolean): HTMLElement {
  return details(
    [
      h("span", { class: "kernel-id" }, `${kernel.id}`),
      h("strong", {}, kernel.short_name),
      " ",
      bound(kernel.verdict),
      h("span", { class: "aside" }, ` ${time(kernel.duration_ns)}`),
      kernel.family === null ? null : h("span", { class: "family" }, swatch(familyLook(kernel.family)), kernel.family),
    ],
    open,
    h("p", { class: "whole-name" }, nameCell(kernel.name, 120)),
    kernel.nvtx.length === 0 && kernel.process === null
      ? null
      : h("p", { class: "aside" }, [kernel.process, ...kernel.nvtx].filter((one) => one !== null).join(" \u203a ")),
    kernel.verdict_because === null ? null : h("p", { class: "lead" }, bound(kernel.verdict), `: ${kernel.verdict_because}`),
    figures(kernelFigures(kernel)),
    kernel.symptoms.length === 0
      ? null
      : h(
          "ul",
          { class: "notes" },
          kernel.symptoms.map((one) => h("li", { class: "note" }, one.text)),
        ),
    h("div", { class: "two" }, throughput(kernel), occupancy(kernel)),
    stalls(kernel),
    rules(kernel),
    hot(kernel),
    lines(kernel),
    kernel.source_notes.length === 0 ? null : h("p", { class: "aside" }, kernel.source_notes.map((note) => `Note: ${note}`).join(" ")),
    kernel.missing.length === 0
      ? null
      : h("p", { class: "aside" }, `not collected: ${kernel.missing.map((one) => `${one.what} (--section ${one.section})`).join(", ")}`),
  );
}
