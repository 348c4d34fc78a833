/** Two traces compared: did it get faster, where, and is that more than noise. */
import type { Context } from "../context";
import type { Diff } from "../documents";
import { details, figures, none, section, verdict } from "../parts";
import { type Column, table } from "../table";
import { type Child, h } from "../text";
import { count, decimal, percent, percents, plural, time, words } from "../units";
import { facts, source, trust } from "./header";
import { filled } from "./tables";

type Row = Diff["rows"][number];
type Pair = Diff["pairs"][number];
type Suspect = Diff["suspects"][number];

const TITLES: [Row["kind"], string][] = [
  ["step", "A step"],
  ["idle_cause", "Idle time of a step, by cause"],
  ["role", "Roles, by change"],
  ["family", "Kernel families, by change"],
  ["kernel", "Kernels, by change"],
  ["operator", "Device time by operator, by change"],
  ["range", "Ranges, by change"],
  ["total", "Totals"],
];
const OPEN = new Set<Row["kind"]>(["step", "idle_cause", "role", "total"]);

const interval = (row: Row): string | null =>
  row.ratio_low === null || row.ratio_high === null ? null : `${decimal(row.ratio_low)} to ${decimal(row.ratio_high)}`;

/** The smallest change that could be shown, in the direction that the row went. */
function smallest(row: Row): string | null {
  if (row.presence !== "both") return null;
  if (row.delta_ns < 0) return row.smallest_decrease_fraction === null ? null : percent(-row.smallest_decrease_fraction);
  return row.smallest_effect_fraction === null ? null : percent(row.smallest_effect_fraction);
}

/** The change as a bar from the middle: left is less time. */
function deltaBar(delta: number, most: number): HTMLElement {
  const bar = h("span", { class: `delta ${delta < 0 ? "less" : "more"}`, "aria-hidden": "true" });
  bar.style.setProperty("--share", String(most > 0 ? Math.abs(delta) / most : 0));
  return bar;
}

function rowsTable(context: Context, caption: string, rows: Row[], whole: number | null): HTMLElement {
  const most = Math.max(...rows.map((row) => Math.abs(row.delta_ns)), 0);
  const label = rows[0]?.kind ?? "row";
  const code = label === "idle_cause";
  const columns: Column<Row>[] = [
    {
      key: "label",
      label: code ? "cause" : words(label === "step" || label === "total" ? "figure" : label),
      kind: "name",
      value: (row) => (code || row.kind === "step" ? words(row.label) : row.label),
    },
    { key: "before", label: "before", kind: "time", scale: "time", value: (row) => row.before_ns },
    { key: "after", label: "after", kind: "time", scale: "time", value: (row) => row.after_ns },
    { key: "delta", label: "change", kind: "time", scale: "time", value: (row) => row.delta_ns },
    { key: "bar", label: "less | more", kind: "text", value: (row) => row.delta_ns, show: (row) => deltaBar(row.delta_ns, most) },
    {
      key: "verdict",
      label: "verdict",
      kind: "text",
      value: (row) => row.verdict ?? row.presence,
      show: (row) => verdict(row.verdict, row.presence),
    },
    {
      key: "of",
      label: "of a step",
      kind: "percent",
      value: (row) => (whole === null || whole <= 0 || row.per !== "step" ? null : row.delta_ns / whole),
    },
    { key: "ratio", label: "ratio", kind: "decimal", value: (row) => row.ratio, title: "after over before, by medians" },
    { key: "interval", label: "99.5 % interval", kind: "text", value: interval, title: "of the ratio of the trimmed means" },
    {
      key: "smallest",
      label: "smallest shown %",
      kind: "text",
      value: smallest,
      title: "the smallest change that data like this can show",
    },
    { key: "calls_before", label: "calls before", kind: "mean", value: (row) => row.calls_before },
    { key: "calls_after", label: "calls after", kind: "mean", value: (row) => row.calls_after },
  ];
  return table({
    caption,
    noun: ["row", "rows"],
    rows,
    columns: filled(rows, columns),
    first: 10,
    filter: (row) => [row.label, row.key, row.verdict ?? row.presence],
    cut: context.cut("diff.rows"),
  });
}

function byKind(context: Context, rows: Row[], whole: number | null, of: string): Child {
  return TITLES.map(([kind, title]) => {
    const some = rows.filter((row) => row.kind === kind);
    if (some.length === 0) return null;
    return details(
      [h("strong", {}, title), h("span", { class: "aside" }, ` ${plural(some.length, "row", "rows")}`)],
      OPEN.has(kind),
      rowsTable(context, `${title} of ${of}`, some, whole),
    );
  });
}

function pairView(context: Context, document: Diff, pair: Pair, index: number): HTMLElement {
  const rows = document.rows.filter((row) => row.pair === index);
  const figure = rows.find((row) => row.kind === "step" && row.key === pair.figure);
  const of = pair.before === pair.after ? pair.after : `${pair.before} to ${pair.after}`;
  const how = pair.figure === "period" ? "start to start" : "first start to last end";
  const before = figure?.before_ns ?? null;
  const after = figure?.after_ns ?? null;
  const factor =
    before === null || after === null || before <= 0 || after <= 0
      ? null
      : before >= after
        ? `${decimal(before / after)} x less time`
        : `${decimal(after / before)} x more time`;
  return h(
    "div",
    { class: "pair" },
    h("h3", {}, of, " ", verdict(pair.verdict)),
    figures([
      { label: `step, ${how}`, value: `${time(before)} \u2192 ${time(after)}`, aside: factor },
      {
        label: "ratio",
        value: decimal(figure?.ratio),
        aside: figure === undefined ? null : (interval(figure) ?? "no interval: too few steps"),
      },
      {
        label: "smallest shown",
        value:
          figure === undefined
            ? "\u2013"
            : `${figure.smallest_decrease_fraction === null ? "\u2013" : percents(-figure.smallest_decrease_fraction)} / +${percents(figure.smallest_effect_fraction)}`,
        aside: "changes within cannot be shown by these steps",
      },
      {
        label: "steps",
        value: `${count(pair.steps_before)} \u2192 ${count(pair.steps_after)}`,
        aside: `paired by their ${pair.matched_by}`,
      },
      { label: "kernels a step", value: `${count(pair.kernels_per_step_before)} \u2192 ${count(pair.kernels_per_step_after)}` },
      {
        label: "GPU waits for its host",
        value: `${percents(pair.host_wait_fraction_before)} \u2192 ${percents(pair.host_wait_fraction_after)}`,
        aside: "of a step",
      },
    ]),
    byKind(context, rows, before, of),
  );
}

function fate(suspect: Suspect): string {
  if (suspect.before === null) return suspect.judged_before ? "new" : "not judged before";
  if (suspect.after === null) return suspect.judged_after ? "gone" : "not judged after";
  return "both";
}

function suspects(context: Context, document: Diff): Child {
  if (document.suspects.length === 0) {
    const cut = context.report.cuts.some(({ list }) => list === "diff.suspects");
    return none(cut ? "The suspects were left out to keep the page small: longpole diff has them." : "Nothing is suspicious in either trace.");
  }
  const perStep = document.suspect_ceilings === "step";
  const win = (share: Suspect["before"]): number | null | undefined => (perStep ? share?.ceiling_per_step_ns : share?.ceiling_ns);
  const columns: Column<Suspect>[] = [
    { key: "code", label: "suspect", kind: "text", value: (row) => words(row.code) },
    {
      key: "before",
      label: "before",
      kind: "percent",
      value: (row) => row.before?.share_fraction,
      bar: true,
      title: "of the wall that the evidence covers",
    },
    {
      key: "after",
      label: "after",
      kind: "percent",
      value: (row) => row.after?.share_fraction,
      bar: true,
      title: "of the wall that the evidence covers",
    },
    { key: "win_before", label: `could win${perStep ? " a step" : ""} before`, kind: "time", scale: "win", value: (row) => win(row.before) },
    { key: "win_after", label: "after", kind: "time", scale: "win", value: (row) => win(row.after) },
    {
      key: "fate",
      label: "",
      kind: "text",
      value: fate,
      show: (row) => (fate(row) === "both" ? "" : fate(row) === "new" || fate(row) === "gone" ? verdict(null, fate(row)) : fate(row)),
    },
  ];
  const shown = table({
    caption: "suspects of either trace",
    noun: ["suspect", "suspects"],
    rows: document.suspects,
    columns,
    cut: context.cut("diff.suspects"),
  });
  if (document.suspect_ceilings !== "other_steps") return shown;
  const aside = "What could be won is of each whole trace, and these have other steps: compare the shares, not the times.";
  return [shown, h("p", { class: "aside" }, aside)];
}

export function compare(context: Context): HTMLElement | null {
  const document = context.documents.diff;
  if (document === undefined) return null;
  const settings = document.settings;
  const lone: Child[] = [
    document.only_before.length > 0 ? h("p", {}, "only before: ", document.only_before.join(", ")) : null,
    document.only_after.length > 0 ? h("p", {}, "only after: ", document.only_after.join(", ")) : null,
  ];
  const traceRows = document.rows.filter((row) => row.pair === null);
  return section(
    "compare",
    "Compared",
    document.pairs.length === 0
      ? none("No steps of the two traces do the same work: what is compared below is the whole traces.")
      : h(
          "div",
          { class: "verdicts" },
          document.pairs.map((pair, i) => {
            const figure = document.rows.find((row) => row.pair === i && row.kind === "step" && row.key === pair.figure);
            return h(
              "p",
              { class: "lead" },
              verdict(pair.verdict),
              ` ${pair.before === pair.after ? pair.after : `${pair.before} to ${pair.after}`}: `,
              h("strong", {}, `${time(figure?.before_ns)} \u2192 ${time(figure?.after_ns)}`),
              ` a step`,
            );
          }),
        ),
    facts([
      ["before", [source(document.before.source), ` \u00b7 trust ${document.before.trust.grade}`]],
      ["after", [source(document.source), ` \u00b7 trust ${document.trust.grade}`]],
    ]),
    settings.length === 0
      ? null
      : [
          h("h3", {}, "Not the same besides times"),
          table({
            caption: "differences of the recordings besides times",
            noun: ["difference", "differences"],
            rows: settings,
            columns: [
              { key: "what", label: "what", kind: "text", value: (row) => row.what },
              { key: "before", label: "before", kind: "name", value: (row) => row.before },
              { key: "after", label: "after", kind: "name", value: (row) => row.after },
              { key: "means", label: "what that does", kind: "prose", value: (row) => row.means },
            ],
          }),
        ],
    h("h3", {}, "Suspects before and after"),
    suspects(context, document),
    document.pairs.map((pair, i) => pairView(context, document, pair, i)),
    lone,
    traceRows.length === 0 ? null : [h("h3", {}, "Whole traces"), byKind(context, traceRows, null, "the whole traces")],
    details(
      "how far either can be believed",
      false,
      h("h4", {}, "before"),
      trust(document.before.trust),
      h("h4", {}, "after"),
      trust(document.trust),
    ),
  );
}
