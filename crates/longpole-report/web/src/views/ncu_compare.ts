/** Two reports of Nsight Compute compared, kernel by kernel. */
import type { Context } from "../context";
import type { NcuCompare } from "../documents";
import { details, none, prose, section } from "../parts";
import { type Column, table } from "../table";
import { type Child, h } from "../text";
import { bytes, clock, count, decimal, MISSING, percents, rate, time, words } from "../units";
import { facts, trust } from "./header";
import { ncuSource } from "./ncu";
import { bound } from "./ncu_kernel";
import { leftOut } from "./summary";
import { filled } from "./tables";

type Pair = NcuCompare["pairs"][number];
type Figure = Pair["figures"][number];
type Name = NcuCompare["names"][number];

const MATCHED: Record<Pair["matched_by"], string> = {
  name: "matched by name",
  function: "matched by function; the template arguments differ",
  order_and_shape: "matched by order and launch shape",
  order: "matched by order alone: it may be another kernel",
};

/** A figure with its unit, as the report's own units go. */
export function figureText(value: number | null, unit: string): string {
  if (value === null) return MISSING;
  switch (unit) {
    case "ns":
      return time(value);
    case "bytes":
    case "byte":
      return bytes(value);
    case "bytes/s":
    case "byte/s":
      return rate(value);
    case "Hz":
      return clock(value);
    case "%":
      return percents(value / 100);
    case "cycle":
      return decimal(value);
    case "":
      return Number.isInteger(value) ? count(value) : decimal(value);
    default:
      return `${decimal(value)} ${unit}`;
  }
}

function figureTable(caption: string, first: string, rows: Figure[], most: number): HTMLElement {
  const columns: Column<Figure>[] = [
    { key: "what", label: first, kind: "text", value: (row) => words(row.what) },
    { key: "before", label: "before", kind: "decimal", value: (row) => row.before, show: (row) => figureText(row.before, row.unit) },
    { key: "after", label: "after", kind: "decimal", value: (row) => row.after, show: (row) => figureText(row.after, row.unit) },
    { key: "ratio", label: "ratio", kind: "decimal", value: (row) => row.ratio, title: "after over before" },
  ];
  return table({ caption, noun: ["figure", "figures"], rows, columns, first: most });
}

function ruleList(title: string, rules: Pair["rules_gone"]): Child {
  if (rules.length === 0) return null;
  return h(
    "div",
    {},
    h("h4", {}, title),
    h(
      "ul",
      { class: "notes" },
      rules.map((rule) => h("li", { class: "note" }, h("strong", {}, rule.name), `: ${rule.text}`)),
    ),
  );
}

function pairView(pair: Pair, open: boolean): HTMLElement {
  const duration = pair.figures.find((figure) => figure.what === "duration");
  const name =
    pair.short_name_before === pair.short_name_after ? pair.short_name_after : `${pair.short_name_before} \u2192 ${pair.short_name_after}`;
  const ratio = duration?.ratio ?? null;
  return details(
    [
      h("strong", {}, name),
      " ",
      duration === undefined
        ? null
        : h(
            "span",
            { class: "change" },
            `${figureText(duration.before, duration.unit)} \u2192 ${figureText(duration.after, duration.unit)}${ratio === null ? "" : `: ${decimal(ratio)} x as long`}`,
          ),
      " ",
      bound(pair.verdict_before),
      " \u2192 ",
      bound(pair.verdict_after),
    ],
    open,
    h("p", { class: "aside" }, `kernel ${pair.before_id} \u2192 ${pair.after_id} \u00b7 ${MATCHED[pair.matched_by]}`),
    h(
      "div",
      { class: "two" },
      h("div", {}, h("h4", {}, "Figures"), figureTable(`figures of ${name}`, "figure", pair.figures, 30)),
      h(
        "div",
        {},
        pair.stalls.length === 0
          ? null
          : [
              h("h4", {}, "Stalls that moved ", h("span", { class: "aside" }, "cycles from one instruction of a warp to its next")),
              figureTable(`stalls of ${name}`, "reason", pair.stalls, 12),
            ],
        ruleList("Gone from ncu's suggestions", pair.rules_gone),
        ruleList("New among ncu's suggestions", pair.rules_new),
      ),
    ),
  );
}

export function ncuCompare(context: Context): (HTMLElement | null)[] {
  const document = context.documents.ncu_compare;
  if (document === undefined) return [];
  const columns: Column<Name>[] = [
    { key: "name", label: "kernel", kind: "name", value: (row) => row.name },
    { key: "launches_before", label: "launches before", kind: "count", value: (row) => row.launches_before },
    { key: "launches_after", label: "after", kind: "count", value: (row) => row.launches_after },
    { key: "before", label: "before", kind: "time", scale: "time", value: (row) => row.before_ns },
    { key: "after", label: "after", kind: "time", scale: "time", value: (row) => row.after_ns },
    { key: "delta", label: "change", kind: "time", scale: "time", value: (row) => row.delta_ns },
    { key: "ratio", label: "after / before", kind: "decimal", value: (row) => row.ratio },
  ];
  const lone = (list: NcuCompare["only_before"], side: string): Child =>
    list.length === 0 ? null : h("p", {}, `only ${side}: `, list.map((one) => one.name).join(", "));
  return [
    section(
      "summary",
      "Compared",
      document.cautions.length === 0
        ? null
        : h(
            "div",
            { class: "cautions" },
            h("h3", {}, "Beware"),
            h(
              "ul",
              { class: "notes" },
              document.cautions.map((one) => h("li", { class: "note note-notice" }, h("strong", {}, one.about), ": ", prose(one.text))),
            ),
          ),
      h(
        "div",
        { class: "two" },
        h("div", {}, h("h3", {}, "Before"), facts(ncuSource(document.before.source)), trust(document.before.trust)),
        h("div", {}, h("h3", {}, "After"), facts(ncuSource(document.source)), trust(document.trust)),
      ),
      h("h3", {}, "Time by name"),
      table({
        caption: "launches and time by kernel name",
        noun: ["kernel", "kernels"],
        rows: document.names,
        columns: filled(document.names, columns),
        filter: (row) => [row.name],
        cut: context.cut("ncu_compare.names"),
        empty: "Neither report holds kernels.",
      }),
      lone(document.only_before, "before"),
      lone(document.only_after, "after"),
      leftOut(context),
    ),
    section(
      "kernels",
      "Kernels",
      document.pairs.length === 0
        ? none("No kernel of the one report is in the other.")
        : document.pairs.map((pair, i) => pairView(pair, i < 3)),
    ),
  ];
}
