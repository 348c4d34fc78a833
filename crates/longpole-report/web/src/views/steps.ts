/** Whole steps: how long, what of it idle and why, rows by role, layers, and each step with the slow ones marked. */
import type { Context } from "../context";
import type { Steps } from "../documents";
import { details, figures, none, section, type Segment, stack, type Figure } from "../parts";
import { causeLook } from "../palette";
import { type Column, nameCell, table } from "../table";
import { type Child, h } from "../text";
import { count, MISSING, percents, plural, time, words } from "../units";
import { byRole, change, type RoleRow } from "./step_rows";
import { filled } from "./tables";

type Group = Steps["groups"][number];
type Ceiling = Group["ceilings"][number];

const BUSY: Segment["look"] = { token: "--busy-kernel", pattern: 0, glyph: "" };
const BETWEEN: Segment["look"] = { token: "--idle", pattern: 1, glyph: "" };

function ceilings(group: Group): Child {
  const wins = group.ceilings.filter((one) => (one.ns_per_step ?? 0) > 0);
  const best = group.best_ceiling;
  if (best === null && wins.length === 0) return null;
  const same = (one: Ceiling): boolean =>
    best !== null &&
    one.kind === best.kind &&
    one.subject === best.subject &&
    one.basis === best.basis &&
    one.roles.join() === best.roles.join() &&
    one.cause === best.cause &&
    one.part === best.part;
  const listed = [...(best === null ? [] : [best]), ...wins.filter((one) => !same(one))];
  const columns: Column<Ceiling>[] = [
    {
      key: "change",
      label: "what is changed",
      kind: "prose",
      value: change,
      show: (row) => [row === best ? h("strong", { class: "best" }, "best supported: ") : null, change(row)],
    },
    { key: "ns", label: "wins a step", kind: "time", value: (row) => row.ns_per_step },
    { key: "span", label: "of span", kind: "percent", value: (row) => row.of_span_fraction, bar: true },
    { key: "basis", label: "rests on", kind: "prose", value: (row) => row.basis },
  ];
  return [
    h("h4", {}, "At most to win ", h("span", { class: "aside" }, "(ceilings overlap: do not add them)")),
    table({
      caption: `ceilings of ${group.name}`,
      noun: ["ceiling", "ceilings"],
      rows: listed,
      columns,
      first: 4,
      filter: (row) => [change(row)],
    }),
  ];
}

function idleStack(group: Group): Child {
  const causes = group.ceilings.filter((one) => one.subject === "idle" && one.cause !== null && (one.ns_per_step ?? 0) > 0);
  const whole = group.period_ns ?? group.span_ns;
  if (whole <= 0) return null;
  const segments: Segment[] = [{ label: "busy", value: group.busy_ns, look: BUSY, text: time(group.busy_ns) }];
  let told = 0;
  for (const one of causes) {
    const ns = one.ns_per_step ?? 0;
    told += ns;
    segments.push({ label: `idle: ${words(one.cause ?? "")}`, value: ns, look: causeLook(one.cause ?? ""), text: time(ns) });
  }
  // Causes are medians of their own: what they leave of the median gap is named, never stretched.
  const rest = group.gap_inside_ns - told;
  if (rest > group.gap_inside_ns * 0.01)
    segments.push({ label: "idle inside, other", value: rest, look: causeLook("nothing_recorded"), text: time(rest) });
  if ((group.gap_between_ns ?? 0) > 0)
    segments.push({ label: "idle between steps", value: group.gap_between_ns ?? 0, look: BETWEEN, text: time(group.gap_between_ns) });
  const sum = segments.reduce((all, one) => all + one.value, 0);
  return stack(`median step of ${group.name}`, segments, Math.max(whole, sum), group.period_ns === null ? "span" : "period");
}

function strip(group: Group): Child {
  if (group.strip.length === 0) return null;
  const most = Math.max(...group.strip.map((layer) => layer.busy_ns), 1);
  const sortedBusy = group.strip.map((layer) => layer.busy_ns).sort((a, b) => a - b);
  const text = `busy of each layer, number 0 first: median ${time(sortedBusy[Math.floor((sortedBusy.length - 1) / 2)])}, least ${time(sortedBusy[0])}, most ${time(sortedBusy.at(-1))}`;
  const outliers = group.strip.flatMap((layer, i) => (layer.outlier ? [i] : []));
  return [
    h("h4", {}, "Layers"),
    h(
      "p",
      { class: "aside" },
      text,
      outliers.length === 0 ? null : `; far from the others of their kind: ${outliers.map((i) => `layer ${i}`).join(", ")}`,
    ),
    h(
      "div",
      { class: "bars strip", role: "img", "aria-label": text },
      group.strip.map((layer, i) => {
        const bar = h("span", {
          class: `bar${layer.outlier ? " outlier" : ""}`,
          title: `layer ${i}: ${time(layer.busy_ns)}${layer.outlier ? ", far from the others of its kind" : ""}`,
        });
        bar.style.setProperty("--share", String(layer.busy_ns / most));
        return bar;
      }),
    ),
  ];
}

/** Steps beyond this many are not drawn one by one. */
const STEPS_DRAWN = 400;

function perStep(context: Context, group: Group): Child {
  if (group.steps.length < 2) return null;
  const slow = new Map(group.slow_steps.map((step) => [step.number, step]));
  const most = Math.max(...group.steps.map((step) => step.span_ns), 1);
  const drawn = group.steps.slice(0, STEPS_DRAWN);
  const buttonOf = (number: number): Child => context.buttons(`step:${group.name}:${number}`);
  return [
    h("h4", {}, "Each step"),
    h(
      "p",
      { class: "aside" },
      "span of each step, the dark part busy; those of a long span are marked ",
      h("span", { class: "slow-mark" }, "\u25b2"),
      group.steps.length > drawn.length ? `; the first ${count(drawn.length)} of ${count(group.steps.length)}` : "",
    ),
    h(
      "div",
      {
        class: "bars steps",
        role: "img",
        "aria-label": `span of ${plural(group.steps.length, "step", "steps")}, longest ${time(most)}; ${plural(slow.size, "is", "are")} slow`,
      },
      drawn.map((step) => {
        const isSlow = slow.has(step.number);
        const bar = h("span", {
          class: `bar${isSlow ? " slow" : ""}`,
          title: `step ${step.number}: span ${time(step.span_ns)}, busy ${time(step.busy_ns)}${isSlow ? ", slow" : ""}`,
        });
        bar.style.setProperty("--share", String(step.span_ns / most));
        bar.style.setProperty("--busy", String(step.span_ns > 0 ? Math.min(1, step.busy_ns / step.span_ns) : 0));
        return bar;
      }),
    ),
    group.slow_steps.length === 0
      ? h("p", { class: "aside" }, "No step has a span clearly longer than the median.")
      : h(
          "ul",
          { class: "slow-steps" },
          group.slow_steps
            .slice(0, 12)
            .map((step) =>
              h(
                "li",
                {},
                h("span", { class: "slow-mark", "aria-hidden": "true" }, "\u25b2 "),
                `step ${step.number}: span ${time(step.excess_ns)} over the median, ${time(step.culprit_ns)} of it `,
                step.culprit === "idle_inside" ? "idle inside it" : ["in ", h("code", {}, step.culprit_role ?? "")],
                step.culprit_kernel === null
                  ? null
                  : [step.culprit === "idle_inside" ? ", mostly before " : ", kernel ", nameCell(step.culprit_kernel, 48)],
                " ",
                buttonOf(step.number),
              ),
            ),
        ),
  ];
}

/** What a step or a layer has besides kernels. */
function besides(copiesAndFills: number): string | null {
  return copiesAndFills > 0 ? `and ${plural(copiesAndFills, "copy or fill", "copies or fills")}` : null;
}

function groupFigures(group: Group): Figure[] {
  const list: Figure[] = [
    { label: "steps", value: count(group.count), aside: group.left_out.length > 0 ? `${count(group.left_out.length)} left out` : null },
    { label: "kernels a step", value: count(group.kernels_per_step), aside: besides(group.activities_per_step - group.kernels_per_step) },
    { label: "busy", value: time(group.busy_ns), aside: group.span_ns > 0 ? `${percents(group.busy_ns / group.span_ns)} of span` : null },
    { label: "span", value: time(group.span_ns) },
    { label: "period", value: time(group.period_ns), aside: group.period_ns === null ? "no two steps follow each other" : null },
    {
      label: "idle inside",
      value: time(group.gap_inside_ns),
      aside: group.span_ns > 0 ? `${percents(group.gap_inside_ns / group.span_ns)} of span` : null,
    },
    { label: "idle between", value: time(group.gap_between_ns) },
  ];
  if (group.layers > 0) {
    list.push({
      label: "layers",
      value: count(group.layers),
      aside: group.layer_kinds
        .map((kind) => {
          // What the document calls kernels here is every place of a layer.
          const others = besides(kind.copies_and_fills);
          const kernels = plural(kind.kernels - kind.copies_and_fills, "kernel", "kernels");
          return `${kind.count} x ${kernels}${others === null ? "" : ` ${others}`}`;
        })
        .slice(0, 4)
        .join(", "),
    });
  }
  if (group.first_half_busy_ns !== null && group.second_half_busy_ns !== null && group.first_half_busy_ns > 0) {
    const drift = group.second_half_busy_ns / group.first_half_busy_ns - 1;
    if (group.count % 2 === 0)
      list.push({
        label: "second half",
        value: `${drift >= 0 ? "+" : "-"}${Math.abs(100 * drift).toFixed(1)} %`,
        aside: "busy, against the first half",
      });
  }
  return list;
}

function groupView(context: Context, group: Group, open: boolean): HTMLElement {
  const rows = byRole(group);
  const columns: Column<RoleRow>[] = [
    { key: "role", label: "role", kind: "name", value: (row) => row.role },
    { key: "part", label: "part", kind: "text", value: (row) => row.part },
    { key: "calls", label: "calls", kind: "mean", value: (row) => row.calls, total: rows.reduce((all, row) => all + row.calls, 0) },
    { key: "ns", label: "time a step", kind: "time", scale: "step", value: (row) => row.ns, total: group.busy_ns },
    { key: "share", label: "share", kind: "percent", value: (row) => row.share, bar: true, title: "of the busy time of all steps" },
    {
      key: "floor",
      label: "floor",
      kind: "time",
      scale: "step",
      value: (row) => row.floor,
      title: "the least time that its operators' bytes and arithmetic take",
    },
    {
      key: "ceiling",
      label: "could save",
      kind: "time",
      scale: "step",
      value: (row) => row.ceiling,
      title: "a step, if it took no longer than its floor",
    },
    {
      key: "kernel",
      label: "kernel",
      kind: "name",
      value: (row) => (row.from === "kernel" ? null : row.kernel),
      show: (row) =>
        row.from === "kernel"
          ? MISSING
          : [nameCell(row.kernel, 30), row.names.length > 1 ? h("span", { class: "aside" }, ` +${row.names.length - 1}`) : null],
    },
    { key: "from", label: "from", kind: "text", value: (row) => row.from, title: "where the role comes from" },
  ];
  const kept = filled(rows, columns);
  return details(
    [
      h("strong", {}, group.name),
      h(
        "span",
        { class: "aside" },
        ` ${plural(group.count, "step", "steps")} found by ${words(group.found_by)} \u00b7 busy ${time(group.busy_ns)} of ${time(group.span_ns)}`,
      ),
    ],
    open,
    h("div", { class: "group" }, figures(groupFigures(group)), idleStack(group)),
    h(
      "p",
      { class: "buttons" },
      context.buttonsOfAll(`step:${group.name}:`, (number, moment) => `show step ${number}: ${moment.label}`),
    ),
    group.notes.length === 0
      ? null
      : h(
          "ul",
          { class: "notes" },
          group.notes.map((note) => h("li", { class: "note" }, note.text)),
        ),
    ceilings(group),
    h("h4", {}, "Rows by role"),
    table({
      caption: `rows by role of ${group.name}`,
      noun: ["role", "roles"],
      rows,
      columns: kept,
      first: 20,
      weight: (row) => row.ns,
      filter: (row) => [row.part, row.role, row.kernel, ...row.names],
      cut: context.cut("steps.groups[].rows"),
    }),
    kept.some((column) => column.key === "floor")
      ? null
      : h(
          "p",
          { class: "aside" },
          "floors: no shapes or no element types recorded, the work replayed from a graph, or the device's peaks not known",
        ),
    strip(group),
    perStep(context, group),
  );
}

export function steps(context: Context): HTMLElement | null {
  const document = context.documents.steps;
  if (document === undefined) return null;
  if (document.groups.length === 0) {
    const notes = document.notes.map((note) => note.text);
    return section("steps", "Steps", none(notes.length > 0 ? notes.join(" ") : "No repeating steps were found in this trace."));
  }
  const first = [...document.groups].sort((a, b) => b.total_busy_ns - a.total_busy_ns)[0];
  const columns: Column<Group>[] = [
    { key: "name", label: "group", kind: "name", value: (row) => row.name },
    {
      key: "device",
      label: "device",
      kind: "text",
      value: (row) => (new Set(document.groups.map((one) => one.device)).size > 1 ? String(row.device ?? MISSING) : null),
    },
    { key: "found", label: "found by", kind: "text", value: (row) => words(row.found_by) },
    { key: "steps", label: "steps", kind: "count", value: (row) => row.count },
    { key: "left", label: "left out", kind: "count", value: (row) => row.left_out.length },
    { key: "layers", label: "layers", kind: "count", value: (row) => row.layers },
    { key: "kernels", label: "kernels", kind: "count", value: (row) => row.kernels_per_step },
    { key: "busy", label: "busy", kind: "time", scale: "step", value: (row) => row.busy_ns },
    { key: "span", label: "span", kind: "time", scale: "step", value: (row) => row.span_ns },
    { key: "period", label: "period", kind: "time", scale: "step", value: (row) => row.period_ns, title: "start to start" },
    { key: "inside", label: "idle inside", kind: "time", scale: "step", value: (row) => row.gap_inside_ns },
    { key: "between", label: "idle between", kind: "time", scale: "step", value: (row) => row.gap_between_ns },
  ];
  return section(
    "steps",
    "Steps",
    h("p", { class: "aside" }, "medians over the steps of a group"),
    table({
      caption: "groups of steps",
      noun: ["group", "groups"],
      rows: document.groups,
      columns: filled(document.groups, columns),
      cut: context.cut("steps.groups"),
      filter: (row) => [row.name],
    }),
    document.groups.map((group) => groupView(context, group, group === first)),
    document.activities_outside > 0
      ? h(
          "p",
          { class: "aside" },
          `${plural(document.activities_outside, "device activity", "device activities")} (${time(document.outside_ns)}) belong to no step`,
        )
      : null,
    document.notes.length === 0
      ? null
      : h(
          "ul",
          { class: "notes" },
          document.notes.map((note) => h("li", { class: "note" }, note.text)),
        ),
  );
}
