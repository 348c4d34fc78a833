/** Suspects with their evidence, the most that each could win, and what to try next; and the four questions. */
import type { Context } from "../context";
import type { Triage } from "../documents";
import { details, figures, none, prose, section } from "../parts";
import { type Child, h } from "../text";
import { bytes, count, decimal, MISSING, percents, rate, time, words } from "../units";

type Smell = Triage["smells"][number];
type Evidence = Smell["evidence"];

const KINDS: Record<string, string> = {
  work_free: "if its work were free",
  at_memory_floor: "at its memory floor",
  at_compute_floor: "at its compute floor",
  fused: "if fused",
  idle_gone: "without that idle time",
  graph_replay: "replayed from a graph",
  host_time_gone: "without that host time",
};

/** A key of evidence and its value; the key's ending says the unit. */
export function evidenceFigure(key: string, value: number | string | string[] | null): { label: string; value: Child } {
  if (value === null) return { label: words(key.replace(/_(ns|fraction|bytes|bytes_per_s)$/, "")), value: MISSING };
  if (Array.isArray(value))
    return {
      label: words(key),
      value: h(
        "ul",
        {},
        value.map((one) => h("li", {}, one)),
      ),
    };
  if (typeof value === "string") return { label: words(key), value };
  const as = (ending: string, show: (n: number) => string): { label: string; value: Child } | null =>
    key.endsWith(ending) ? { label: words(key.slice(0, -ending.length)), value: show(value) } : null;
  return (
    as("_bytes_per_s", rate) ??
    as("_ns", time) ??
    as("_fraction", percents) ??
    as("_bytes", bytes) ?? { label: words(key), value: Number.isInteger(value) ? count(value) : decimal(value) }
  );
}

function evidence(of: Evidence): HTMLElement {
  return figures(
    Object.entries(of).map(([key, value]) => {
      const figure = evidenceFigure(key, value);
      // A name and its time may have one word.
      return key.endsWith("_ns") && Object.hasOwn(of, key.slice(0, -3)) ? { ...figure, label: `${figure.label}: time` } : figure;
    }),
    "evidence",
  );
}

function win(smell: Smell): Child {
  const { ceiling } = smell;
  if (ceiling.win_ns === null) return null;
  const kind = ceiling.kind === null ? "" : ` ${Object.hasOwn(KINDS, ceiling.kind) ? KINDS[ceiling.kind] : words(ceiling.kind)}`;
  const share =
    ceiling.win_fraction === null
      ? ""
      : ` (${percents(ceiling.win_fraction)} of wall${ceiling.is_calibrated ? " without the profiler" : ""})`;
  return h("span", { class: "win" }, "wins at most ", h("strong", {}, time(ceiling.win_ns)), `${share}${kind}`);
}

function suspect(context: Context, smell: Smell, open: boolean): HTMLElement {
  const title = h(
    "h3",
    {},
    h("span", { class: "code" }, words(smell.code)),
    smell.subject === "" ? null : h("span", { class: "subject" }, ` ${smell.subject}`),
  );
  const share = h(
    "div",
    { class: "suspect-share" },
    h("strong", {}, percents(smell.share_fraction)),
    h("span", {}, smell.share_fraction === null ? "covers no time" : "of wall"),
  );
  const bar = h("span", { class: "meter", "aria-hidden": "true" });
  bar.style.setProperty("--share", String(Math.min(1, smell.share_fraction ?? 0)));
  share.append(bar);
  return h(
    "li",
    { class: "suspect" },
    share,
    h(
      "div",
      { class: "suspect-body" },
      h("div", { class: "suspect-head" }, title, h("span", { class: "buttons" }, context.buttons(`smell:${smell.code}:${smell.subject}`))),
      h("p", {}, smell.summary),
      h("p", { class: "next" }, "\u2192 ", prose(smell.next), smell.ceiling.win_ns === null ? null : ["; ", win(smell)]),
      details(
        "evidence",
        open,
        evidence(smell.evidence),
        h("p", { class: "formula" }, h("span", { class: "aside" }, "ceiling: "), smell.ceiling.formula),
        h(
          "p",
          { class: "aside" },
          h("code", {}, `longpole explain ${smell.code}`),
          " says what it means, how it is detected and what usually fixes it",
        ),
      ),
    ),
  );
}

export function suspects(context: Context): HTMLElement | null {
  const triage = context.documents.triage;
  if (triage === undefined) return null;
  return section(
    "suspects",
    "Suspects",
    triage.smells.length === 0
      ? none(
          context.report.cuts.some((cut) => cut.list === "triage.smells")
            ? "The suspects were left out to keep the page small: longpole triage has them."
            : "Nothing is suspicious here.",
        )
      : [
          h(
            "p",
            { class: "aside" },
            "by the share of wall that the evidence covers; ceilings are upper bounds and overlap: do not add them",
          ),
          h(
            "ol",
            { class: "suspects" },
            triage.smells.map((smell, i) => suspect(context, smell, i === 0)),
          ),
        ],
  );
}

export function questions(context: Context): HTMLElement | null {
  const triage = context.documents.triage;
  if (triage === undefined || triage.questions.length === 0) return null;
  return section(
    "questions",
    "Questions",
    h(
      "div",
      { class: "questions" },
      triage.questions.map((one) =>
        h(
          "div",
          { class: "question" },
          h("h3", {}, one.question),
          h("p", {}, prose(one.answer)),
          Object.keys(one.evidence).length === 0 ? null : details("figures", false, evidence(one.evidence)),
        ),
      ),
    ),
  );
}
