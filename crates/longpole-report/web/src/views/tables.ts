/** Operators, kernels, families, ranges and memory: the whole tables of the commands of these names. */
import type { Context } from "../context";
import type { Triage } from "../documents";
import { familyLook } from "../palette";
import { none, section, swatch } from "../parts";
import { type Column, nameCell, table } from "../table";
import { type Child, h } from "../text";
import { bytes, MISSING, percents, time } from "../units";

type Op = Triage["ops"][number];
type Kernel = Triage["kernels"][number];
type Family = Triage["families"][number];
type Range = Triage["ranges"][number];

const total = <Row>(rows: Row[], value: (row: Row) => number | null | undefined): number | null => {
  let sum: number | null = null;
  for (const row of rows) {
    const one = value(row);
    if (one !== null && one !== undefined) sum = (sum ?? 0) + one;
  }
  return sum;
};

const share = (part: number | null | undefined, whole: number | null): number | null =>
  part === null || part === undefined || whole === null || whole <= 0 ? null : part / whole;

/** Columns of which no row has a value are left out. */
export function filled<Row>(rows: Row[], columns: Column<Row>[]): Column<Row>[] {
  return columns.filter((column, i) => i === 0 || rows.some((row) => (column.value(row) ?? null) !== null));
}

/** What the terminal says below tables whose rows overlap: what runs at the same time counts in each of its rows. */
export function overlapNote(sum: number | null, busy: number | null | undefined, shares: "busy" | "sum"): Child {
  if (sum === null || busy === null || busy === undefined || busy <= 0 || sum / busy <= 1.001) return null;
  const add = shares === "busy" ? `shares are of busy and add to ${percents(sum / busy)}` : "shares are of what the rows add to";
  return h(
    "p",
    { class: "aside" },
    `overlap: the rows add to ${time(sum)}, busy is ${time(busy)}; what runs at the same time counts in each row, and ${add}`,
  );
}

/** A family with its mark. */
export function familyCell(family: string): Child {
  return h("span", { class: "family" }, swatch(familyLook(family)), family);
}

const triageOf = (context: Context): Triage | undefined => context.documents.triage ?? context.documents.sums;

export function operators(context: Context): HTMLElement | null {
  const triage = triageOf(context);
  if (triage === undefined || context.report.kind === "sums") return null;
  const rows = triage.ops;
  const whole = total(rows, (row) => row.self_cuda_ns);
  const columns: Column<Op>[] = [
    { key: "name", label: "operator", kind: "name", value: (row) => row.name },
    {
      key: "shapes",
      label: "input shapes",
      kind: "name",
      value: (row) => row.shapes,
      show: (row) => (row.shapes === null ? MISSING : nameCell(row.shapes, 36)),
    },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls },
    {
      key: "self_cpu",
      label: "self CPU",
      kind: "time",
      scale: "cpu",
      value: (row) => row.self_cpu_ns,
      total: total(rows, (row) => row.self_cpu_ns),
      title: "host time of the operator itself, without the operators in it",
    },
    { key: "cpu", label: "CPU", kind: "time", scale: "cpu", value: (row) => row.cpu_ns, title: "host time with the operators in it" },
    {
      key: "self_cuda",
      label: "self CUDA",
      kind: "time",
      scale: "cuda",
      value: (row) => row.self_cuda_ns,
      total: whole,
      title: "device time of what it launched itself",
    },
    {
      key: "share",
      label: "share",
      kind: "percent",
      value: (row) => share(row.self_cuda_ns, whole),
      bar: true,
      title: "of the self CUDA time of all rows",
    },
    { key: "cuda", label: "CUDA", kind: "time", scale: "cuda", value: (row) => row.cuda_ns, title: "device time with the operators in it" },
    {
      key: "self_cuda_mem",
      label: "self CUDA mem",
      kind: "bytes",
      value: (row) => row.self_cuda_mem_bytes,
      title: "device memory allocated less freed, by itself",
    },
  ];
  return section(
    "operators",
    "Operators",
    table({
      caption: "operators",
      noun: ["operator", "operators"],
      rows,
      columns: filled(rows, columns),
      filter: (row) => [row.name, row.shapes],
      cut: context.cut("triage.ops"),
      ...withMoments(
        context,
        rows,
        (row) => `op:${row.name}`,
        (row) => row.name,
      ),
      empty: "No operator, call or device work was recorded.",
    }),
    overlapNote(whole, context.documents.triage?.totals.gpu_busy_ns, "sum"),
  );
}

export function kernels(context: Context): HTMLElement | null {
  const triage = triageOf(context);
  if (triage === undefined) return null;
  const rows = triage.kernels;
  const layers = rows.some((row) => row.kind === "layer");
  const whole = total(rows, (row) => row.cuda_ns);
  const columns: Column<Kernel>[] = [
    {
      key: "name",
      label: layers ? "layer" : "kernel",
      kind: "name",
      value: (row) => row.short_name,
      show: (row) => nameCell(row.short_name, 48, row.name),
    },
    { key: "family", label: "family", kind: "text", value: (row) => row.family, show: (row) => familyCell(row.family) },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls, total: total(rows, (row) => row.calls) },
    { key: "cuda", label: "CUDA", kind: "time", value: (row) => row.cuda_ns, total: whole },
    {
      key: "share",
      label: "share",
      kind: "percent",
      value: (row) => share(row.cuda_ns, whole),
      bar: true,
      title: "of the summed time of all rows",
    },
    { key: "average", label: "average", kind: "time", scale: "one", value: (row) => row.average_ns },
    { key: "min", label: "min", kind: "time", scale: "one", value: (row) => row.min_ns },
    { key: "median", label: "median", kind: "time", scale: "one", value: (row) => row.median_ns },
    { key: "max", label: "max", kind: "time", scale: "one", value: (row) => row.max_ns },
    { key: "cycles", label: "cycles", kind: "count", value: (row) => row.cycles },
    { key: "flop_rate", label: "FLOP rate", kind: "flop_rate", value: (row) => row.flops_per_s },
    { key: "byte_rate", label: "byte rate", kind: "rate", value: (row) => row.bytes_per_s },
    { key: "of_peak", label: "of peak", kind: "percent", value: (row) => row.floor_fraction },
    {
      key: "op",
      label: "launched by",
      kind: "name",
      value: (row) => row.op,
      show: (row) => (row.op === null ? MISSING : nameCell(row.op, 30)),
    },
    { key: "scope", label: "in scope", kind: "name", value: (row) => row.scopes?.[0]?.name },
  ];
  return section(
    "kernels",
    layers ? "Layers" : "Kernels",
    table({
      caption: layers ? "layers" : "kernels, copies and fills",
      noun: layers ? ["layer", "layers"] : ["kernel", "kernels"],
      rows,
      columns: filled(rows, columns),
      filter: (row) => [row.short_name, row.name, row.family, row.op],
      cut: context.cut("triage.kernels", "sums.kernels"),
      ...withMoments(
        context,
        rows,
        (row) => `kernel:${row.name}`,
        (row) => row.short_name,
      ),
      empty: "No kernels were recorded: device times are unknown.",
    }),
    overlapNote(whole, context.documents.triage?.totals.gpu_busy_ns, "sum"),
  );
}

/** A column of buttons, when any row has a moment. */
function withMoments<Row>(
  context: Context,
  rows: Row[],
  of: (row: Row) => string,
  what: (row: Row) => string,
): { action?: (row: Row) => Child } {
  if (!rows.some((row) => context.momentsOf(of(row)).length > 0)) return {};
  return { action: (row) => context.rowButton(of(row), what(row)) };
}

export function families(context: Context): HTMLElement | null {
  const triage = triageOf(context);
  if (triage === undefined) return null;
  const rows = triage.families;
  const whole = total(rows, (row) => row.self_cuda_ns);
  const columns: Column<Family>[] = [
    { key: "family", label: "family", kind: "text", value: (row) => row.family, show: (row) => familyCell(row.family) },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls, total: total(rows, (row) => row.calls) },
    { key: "cuda", label: "CUDA", kind: "time", value: (row) => row.self_cuda_ns, total: whole },
    {
      key: "share",
      label: "share",
      kind: "percent",
      value: (row) => row.share_fraction,
      bar: true,
      title: "of the summed duration of all device activity",
    },
  ];
  return section(
    "families",
    "Kernel families",
    table({
      caption: "kernel families",
      noun: ["family", "families"],
      rows,
      columns: filled(rows, columns),
      first: 20,
      empty: "No device work was recorded, so there are no families.",
    }),
    overlapNote(whole, context.documents.triage?.totals.gpu_busy_ns, "sum"),
  );
}

export function ranges(context: Context): HTMLElement | null {
  const triage = triageOf(context);
  if (triage === undefined) return null;
  const rows = triage.ranges;
  const columns: Column<Range>[] = [
    { key: "name", label: "range", kind: "name", value: (row) => row.name },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls },
    { key: "host", label: "host", kind: "time", value: (row) => row.cpu_ns, title: "summed host time" },
    {
      key: "span",
      label: "GPU span",
      kind: "time",
      scale: "gpu",
      value: (row) => row.gpu_span_ns,
      title: "summed first start to last end of the device work launched inside",
    },
    { key: "busy", label: "GPU busy", kind: "time", scale: "gpu", value: (row) => row.gpu_busy_ns, title: "union of that work" },
    { key: "idle", label: "GPU idle", kind: "time", scale: "gpu", value: (row) => row.gpu_idle_ns, title: "span less busy" },
    {
      key: "busy_share",
      label: "busy",
      kind: "percent",
      value: (row) => share(row.gpu_busy_ns, row.gpu_span_ns),
      bar: true,
      title: "of the span",
    },
    { key: "kernels", label: "kernels", kind: "count", value: (row) => row.kernels },
    { key: "cuda", label: "CUDA inside", kind: "time", value: (row) => row.cuda_ns },
    { key: "self_cuda", label: "own CUDA", kind: "time", value: (row) => row.self_cuda_ns },
    { key: "cycles", label: "cycles", kind: "count", value: (row) => row.cycles },
    { key: "flop_rate", label: "FLOP rate", kind: "flop_rate", value: (row) => row.flops_per_s },
    { key: "byte_rate", label: "byte rate", kind: "rate", value: (row) => row.bytes_per_s },
    { key: "of_peak", label: "of peak", kind: "percent", value: (row) => row.floor_fraction },
  ];
  return section(
    "ranges",
    "Ranges",
    table({
      caption: "named ranges, nested ones below the range that they are in",
      noun: ["range", "ranges"],
      rows,
      columns: filled(rows, columns),
      depth: (row) => row.depth,
      filter: (row) => [...row.parents, row.name],
      cut: context.cut("triage.ranges", "sums.ranges"),
      ...withMoments(
        context,
        rows,
        (row) => `range:${row.name}`,
        (row) => row.name,
      ),
      empty: "The input names no ranges: record_function, NVTX or user annotations would name the phases of the run.",
    }),
  );
}

export function memory(context: Context, curves: HTMLElement): HTMLElement | null {
  const document = context.documents.memory;
  if (document === undefined && context.report.curves.length === 0) return null;
  const rows = document?.memory ?? [];
  const columns: Column<(typeof rows)[number]>[] = [
    { key: "name", label: "operator", kind: "name", value: (row) => row.name },
    { key: "place", label: "memory", kind: "text", value: (row) => row.place },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls },
    { key: "allocations", label: "allocations", kind: "count", value: (row) => row.allocations },
    { key: "allocated", label: "allocated", kind: "bytes", scale: "sum", value: (row) => row.allocated_bytes },
    { key: "freed", label: "freed", kind: "bytes", scale: "sum", value: (row) => row.freed_bytes },
    { key: "net", label: "net", kind: "bytes", scale: "sum", value: (row) => row.net_bytes },
    { key: "peak", label: "peak", kind: "bytes", value: (row) => row.peak_bytes, title: "the most that one call held" },
  ];
  const peaks = [
    document?.peak_allocated_bytes == null ? null : `allocated ${bytes(document.peak_allocated_bytes)}`,
    document?.peak_reserved_bytes == null ? null : `reserved ${bytes(document.peak_reserved_bytes)}`,
  ].filter((one) => one !== null);
  return section(
    "memory",
    context.report.curves.length > 0 ? "Memory and queue" : "Memory",
    curves,
    document === undefined
      ? null
      : !document.recorded
        ? none("Allocations were not recorded: profile_memory=True records them.")
        : [
            peaks.length === 0 ? null : h("p", {}, `largest total the device allocator reported: ${peaks.join(", ")}`),
            table({
              caption: "memory by operator",
              noun: ["operator", "operators"],
              rows,
              columns: filled(rows, columns),
              filter: (row) => [row.name],
              cut: context.cut("memory.memory"),
              empty: "No operator allocated memory.",
            }),
          ],
  );
}
