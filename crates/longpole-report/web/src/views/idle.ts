/** Why the devices were idle: causes, by range, by what the host did meanwhile. */
import { CAUSES } from "../causes";
import type { Context } from "../context";
import type { Idle } from "../documents";
import { causeLook } from "../palette";
import { none, section, stack, swatch } from "../parts";
import { type Column, table } from "../table";
import { type Child, h } from "../text";
import { decimal, percent, percents, plural, time, words } from "../units";
import { facts } from "./header";
import { filled } from "./tables";

type Cause = Idle["causes"][number];

export function causeCell(cause: string): Child {
  return h("span", { class: "family" }, swatch(causeLook(cause)), words(cause));
}

const side = (cause: Cause): string => (cause.cause === "nothing_recorded" ? "?" : cause.is_device_side ? "device" : "host");

/** Causes as parts of one bar. */
export function causeStack(name: string, causes: { cause: string; idle_ns: number }[], whole: number, of: string): HTMLElement {
  return stack(
    name,
    causes.map((one) => ({ label: words(one.cause), value: one.idle_ns, look: causeLook(one.cause), text: time(one.idle_ns) })),
    whole,
    of,
  );
}

const largestCauses = (causes: { cause: string; idle_ns: number }[], whole: number): string =>
  causes
    .slice(0, 2)
    .map((one) => `${words(one.cause)} ${percent(one.idle_ns / Math.max(whole, 1))}`)
    .join(", ");

export function idle(context: Context): HTMLElement | null {
  const document = context.documents.idle;
  if (document === undefined) return null;
  const { causes, idle_ns: whole, span_ns: span } = document;
  if (whole === null || span === null)
    return section("idle", "Idle", none("No device activity was recorded: whether and why the device was idle cannot be known."));
  if (whole === 0) return section("idle", "Idle", none("The device was never idle between its first and its last work."));
  const sum = (test: (cause: Cause) => boolean): number => causes.filter(test).reduce((all, one) => all + one.idle_ns, 0);
  const host = sum((one) => side(one) === "host");
  const device = sum((one) => side(one) === "device");
  const untold = sum((one) => side(one) === "?");
  const gaps = document.devices.reduce((all, one) => all + one.gaps, 0);
  const queue = document.queue;
  const causeColumns: Column<Cause>[] = [
    { key: "cause", label: "cause", kind: "text", value: (row) => row.cause, show: (row) => causeCell(row.cause) },
    { key: "side", label: "side", kind: "text", value: side, title: "host: the work was not launched yet; device: it was" },
    { key: "idle", label: "idle", kind: "time", value: (row) => row.idle_ns, total: whole },
    { key: "share", label: "share", kind: "percent", value: (row) => row.idle_ns / whole, bar: true },
    { key: "intervals", label: "intervals", kind: "count", value: (row) => row.intervals },
    { key: "largest", label: "largest", kind: "time", value: (row) => row.largest_ns },
    { key: "at", label: "at", kind: "time", value: (row) => row.largest_at_ns, title: "when the largest began" },
    { key: "meaning", label: "meaning", kind: "prose", value: (row) => CAUSES[row.cause] ?? "" },
  ];
  const rangeColumns: Column<Idle["by_range"][number]>[] = [
    { key: "name", label: "range", kind: "name", value: (row) => row.name },
    { key: "calls", label: "calls", kind: "count", value: (row) => row.calls },
    { key: "span", label: "span", kind: "time", scale: "range", value: (row) => row.span_ns },
    { key: "idle", label: "idle", kind: "time", scale: "range", value: (row) => row.idle_ns },
    {
      key: "share",
      label: "idle",
      kind: "percent",
      value: (row) => (row.span_ns > 0 ? row.idle_ns / row.span_ns : null),
      bar: true,
      title: "of the span",
    },
    {
      key: "queue",
      label: "queue empty",
      kind: "time",
      scale: "range",
      value: (row) => row.empty_queue_ns,
      title: "the part of the idle time in which nothing was queued",
    },
    { key: "causes", label: "largest causes, % of idle", kind: "prose", value: (row) => largestCauses(row.causes, row.idle_ns) },
  ];
  const frameColumns: Column<Idle["by_frame"][number]>[] = [
    {
      key: "name",
      label: "host frame",
      kind: "name",
      value: (row) => (row.inside === null ? row.name : `${row.name ?? ""} in ${row.inside}`),
    },
    { key: "kind", label: "kind", kind: "text", value: (row) => words(row.kind) },
    { key: "cause", label: "cause", kind: "text", value: (row) => row.cause, show: (row) => causeCell(row.cause) },
    { key: "idle", label: "idle", kind: "time", value: (row) => row.idle_ns },
    { key: "share", label: "share", kind: "percent", value: (row) => row.idle_ns / whole, bar: true, title: "of all idle time" },
    { key: "intervals", label: "intervals", kind: "count", value: (row) => row.intervals },
    { key: "largest", label: "largest", kind: "time", value: (row) => row.largest_ns },
  ];
  const anyMoment = causes.some((row) => context.momentsOf(`cause:${row.cause}`).length > 0);
  return section(
    "idle",
    "Idle",
    h(
      "p",
      { class: "lead" },
      h("strong", {}, time(whole)),
      ` of ${time(span)} span (${percents(whole / span)}), ${plural(gaps, "gap", "gaps")}`,
    ),
    causeStack("idle time by cause", causes, whole, "idle"),
    facts([
      ["host side", `${time(host)} (${percents(host / whole)}): the work was not launched yet`],
      ["device side", `${time(device)} (${percents(device / whole)}): it was launched, a faster host would not help`],
      ...(untold > 0 ? [["not told", `${time(untold)} (${percents(untold / whole)}): nothing recorded`] as [string, Child]] : []),
      ...(queue === null || queue.empty_fraction === null
        ? []
        : [
            [
              "queue",
              `empty while the device was idle ${percents(queue.empty_fraction)} of the time; ${decimal(queue.mean_depth)} launches deep on average, at most ${queue.max_depth}`,
            ] as [string, Child],
          ]),
    ]),
    h("h3", {}, "By cause"),
    table({
      caption: "idle time by cause",
      noun: ["cause", "causes"],
      rows: causes,
      columns: causeColumns,
      ...(anyMoment ? { action: (row: Cause) => context.rowButton(`cause:${row.cause}`, words(row.cause)) } : {}),
    }),
    h("h3", {}, "By range"),
    table({
      caption: "idle time by range",
      noun: ["range", "ranges"],
      rows: document.by_range,
      columns: rangeColumns,
      depth: (row) => row.parents.length,
      filter: (row) => [...row.parents, row.name],
      cut: context.cut("idle.by_range"),
      empty: "The input names no ranges that launched device work.",
    }),
    h("h3", {}, "By host frame"),
    table({
      caption: "idle time by what the host did",
      noun: ["frame", "frames"],
      rows: document.by_frame,
      columns: filled(document.by_frame, frameColumns),
      first: 10,
      filter: (row) => [row.name, row.inside, row.cause, words(row.cause), row.kind],
      cut: context.cut("idle.by_frame"),
      empty: "Nothing says what the host did while the device was idle.",
    }),
  );
}
