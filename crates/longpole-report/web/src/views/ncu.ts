/** Reports of Nsight Compute: what was read, kernels in full, totals by name and family, launches. */
import type { Context } from "../context";
import type { Ncu } from "../documents";
import { none, section } from "../parts";
import { type Column, table } from "../table";
import { type Child, h } from "../text";
import { bytes, MISSING, plural } from "../units";
import { facts, trust } from "./header";
import { bound, dims, kernelView } from "./ncu_kernel";
import { leftOut } from "./summary";
import { familyCell, filled } from "./tables";

type Launch = NonNullable<Ncu["launches"]>[number];
type Name = Ncu["names"][number];

export function ncuSource(of: Ncu["source"]): [string, Child][] {
  const devices = of.devices.map((device) => {
    const parts = [
      device.sm_count === null ? null : `${device.sm_count} SMs`,
      device.memory_bytes === null ? null : bytes(device.memory_bytes),
      device.compute_capability === null ? null : `compute capability ${device.compute_capability}`,
    ];
    return `${device.name} (${parts.filter((part) => part !== null).join(", ")})`;
  });
  const list: [string, Child][] = [
    [
      "source",
      `${of.path} \u00b7 ${of.format} \u00b7 ${bytes(of.bytes)} uncompressed \u00b7 ${plural(of.kernels, "kernel", "kernels")}${of.ncu_version === null ? "" : ` \u00b7 ncu ${of.ncu_version}`}`,
    ],
  ];
  if (devices.length > 0)
    list.push(["device", `${devices.join(", ")}${of.cuda_version === null ? "" : ` \u00b7 CUDA ${of.cuda_version}`}`]);
  if (of.settings.length > 0) list.push(["measured with", of.settings.map((one) => `${one.option} ${one.value}`).join(", ")]);
  return list;
}

const SHARED: Column<Name>[] = [
  { key: "launches", label: "launches", kind: "count", value: (row) => row.launches },
  { key: "time", label: "time", kind: "time", value: (row) => row.duration_ns },
  { key: "share", label: "share", kind: "percent", value: (row) => row.share_fraction, bar: true },
  { key: "min", label: "min", kind: "time", scale: "one", value: (row) => row.min_ns },
  { key: "median", label: "median", kind: "time", scale: "one", value: (row) => row.median_ns },
  { key: "max", label: "max", kind: "time", scale: "one", value: (row) => row.max_ns },
  {
    key: "dram",
    label: "DRAM",
    kind: "percent",
    value: (row) => (row.dram_pct === null ? null : row.dram_pct / 100),
    title: "of peak, weighted by time",
  },
  {
    key: "sm",
    label: "SM",
    kind: "percent",
    value: (row) => (row.sm_pct === null ? null : row.sm_pct / 100),
    title: "of peak, weighted by time",
  },
  {
    key: "verdict",
    label: "verdict",
    kind: "text",
    value: (row) => row.verdict,
    show: (row) => bound(row.verdict),
    title: "that most of the time has",
  },
];

export function ncu(context: Context): (HTMLElement | null)[] {
  const document = context.documents.ncu;
  if (document === undefined) return [];
  const nameColumns: Column<Name>[] = [
    { key: "name", label: "kernel", kind: "name", value: (row) => row.short_name ?? row.name },
    {
      key: "family",
      label: "family",
      kind: "text",
      value: (row) => row.family,
      show: (row) => (row.family === null ? MISSING : familyCell(row.family)),
    },
    ...SHARED,
  ];
  const familyColumns: Column<Name>[] = [
    {
      key: "family",
      label: "family",
      kind: "text",
      value: (row) => row.family,
      show: (row) => (row.family === null ? MISSING : familyCell(row.family)),
    },
    ...SHARED,
  ];
  const launchColumns: Column<Launch>[] = [
    { key: "name", label: "launch", kind: "name", value: (row) => row.short_name },
    { key: "id", label: "number", kind: "count", value: (row) => row.id },
    {
      key: "family",
      label: "family",
      kind: "text",
      value: (row) => row.family,
      show: (row) => (row.family === null ? MISSING : familyCell(row.family)),
    },
    { key: "grid", label: "grid", kind: "text", value: (row) => (row.grid === null ? null : dims(row.grid)) },
    { key: "block", label: "block", kind: "text", value: (row) => (row.block === null ? null : dims(row.block)) },
    { key: "registers", label: "registers", kind: "count", value: (row) => row.registers_per_thread },
    { key: "waves", label: "waves", kind: "decimal", value: (row) => row.waves_per_sm },
    { key: "time", label: "time", kind: "time", value: (row) => row.duration_ns },
    { key: "dram_bytes", label: "DRAM bytes", kind: "bytes", value: (row) => row.dram_bytes },
    { key: "dram", label: "DRAM", kind: "percent", value: (row) => (row.dram_pct === null ? null : row.dram_pct / 100) },
    { key: "memory", label: "memory", kind: "percent", value: (row) => (row.memory_pct === null ? null : row.memory_pct / 100) },
    { key: "sm", label: "SM", kind: "percent", value: (row) => (row.sm_pct === null ? null : row.sm_pct / 100) },
    {
      key: "occupancy",
      label: "occupancy",
      kind: "percent",
      value: (row) => (row.achieved_occupancy_pct === null ? null : row.achieved_occupancy_pct / 100),
    },
    { key: "nvtx", label: "in range", kind: "name", value: (row) => row.nvtx },
    { key: "verdict", label: "verdict", kind: "text", value: (row) => row.verdict, show: (row) => bound(row.verdict) },
  ];
  const launches = document.launches;
  return [
    section(
      "summary",
      "Summary",
      trust(document.trust),
      facts(ncuSource(document.source)),
      h("h3", {}, "By kernel"),
      table({
        caption: "totals by kernel name",
        noun: ["kernel", "kernels"],
        rows: document.names,
        columns: filled(document.names, nameColumns),
        filter: (row) => [row.name, row.family],
        cut: context.cut("ncu.names"),
        empty: "The report holds no kernels.",
      }),
      leftOut(context),
    ),
    section(
      "kernels",
      "Kernels in full",
      document.kernels.length === 0
        ? none("No kernel is shown in full here: the report has many, and the table of launches has them all.")
        : document.kernels.map((kernel, i) => kernelView(kernel, i === 0 || document.kernels.length <= 4)),
      context.cut("ncu.kernels") === null ? null : h("p", { class: "aside" }, context.cut("ncu.kernels")),
    ),
    document.families.length < 2
      ? null
      : section(
          "families",
          "Kernel families",
          table({
            caption: "totals by family",
            noun: ["family", "families"],
            rows: document.families,
            columns: filled(document.families, familyColumns),
          }),
        ),
    launches === null || launches.length === 0
      ? null
      : section(
          "launches",
          "Launches",
          table({
            caption: "launches",
            noun: ["launch", "launches"],
            rows: launches,
            columns: filled(launches, launchColumns),
            filter: (row) => [row.name, row.family, row.nvtx],
            cut: context.cut("ncu.launches"),
          }),
        ),
  ];
}
