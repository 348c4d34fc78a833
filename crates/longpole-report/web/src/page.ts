/** The page's shell: sections in order, navigation, and what ties the views together. */
import { mountCurves } from "./canvas/curves";
import { mountIcicle } from "./canvas/icicle";
import { mountTimeline } from "./canvas/timeline";
import { Linked, sharedWindow } from "./canvas/window";
import { Context, type Typed } from "./context";
import type { Moment, Report, Timeline } from "./data";
import { details, none, section } from "./parts";
import { type Child, h, setText } from "./text";
import { onTheme, theme, toggleTheme } from "./theme";
import { compare } from "./views/compare";
import { idle } from "./views/idle";
import { ncu } from "./views/ncu";
import { ncuCompare } from "./views/ncu_compare";
import { roofline } from "./views/roofline";
import { steps } from "./views/steps";
import { summary } from "./views/summary";
import { questions, suspects } from "./views/suspects";
import { families, kernels, memory, operators, ranges } from "./views/tables";

interface Drawn {
  redraw(): void;
}

interface Boxes {
  timeline: HTMLElement;
  before_timeline: HTMLElement;
  /** What is about both timelines of a comparison. */
  both: HTMLElement;
  icicle: HTMLElement;
  curves: HTMLElement;
}

/** A view that fails takes no other with it, and says that it did. */
function guarded(id: string, title: string, make: () => HTMLElement | null | (HTMLElement | null)[]): HTMLElement[] {
  try {
    return [make()].flat().filter((one) => one !== null);
  } catch (error) {
    console.error(error);
    return [
      section(
        id,
        title,
        h(
          "p",
          { role: "alert", class: "broken" },
          `This part could not be shown: ${error instanceof Error ? error.message : String(error)}`,
        ),
      ),
    ];
  }
}

function timelineSection(context: Context, boxes: Boxes): HTMLElement {
  const { report } = context;
  const own = report.timeline === null ? none("This input has no timeline: it holds totals, not when anything ran.") : boxes.timeline;
  if (report.before_timeline === undefined) return section("timeline", "Timeline", own);
  const path = (of: Typed | null): string => of?.triage?.source.path ?? "";
  return section(
    "timeline",
    "Timeline",
    report.timeline === null || report.before_timeline === null ? null : boxes.both,
    h("h3", {}, `After \u00b7 ${path(context.documents)}`),
    own,
    h("h3", {}, `Before \u00b7 ${path(context.before)}`),
    report.before_timeline === null ? none("The trace before has no timeline.") : boxes.before_timeline,
  );
}

const lengthOf = (of: Timeline | null | undefined): number => (of === null || of === undefined ? 0 : of.end_ns - of.start_ns);

/** Both timelines of a comparison: they begin at the left edge, have one scale, and move together unless the reader wants otherwise. */
function mountBoth(
  boxes: Boxes,
  report: Report,
  bytes: Uint8Array,
  mount: (box: HTMLElement, make: () => Drawn) => void,
): ((moment: Moment) => void) | null {
  const least_ns = Math.max(lengthOf(report.timeline), lengthOf(report.before_timeline));
  const earlier: Report = {
    ...report,
    documents: report.before ?? {},
    before: null,
    timeline: report.before_timeline ?? null,
    before_timeline: null,
    icicle: null,
    curves: [],
    moments: [],
  };
  let show: ((moment: Moment) => void) | null = null;
  mount(boxes.timeline, () => {
    const timeline = mountTimeline(boxes.timeline, report, bytes, { least_ns, name: "after", is_second: false });
    show = (moment) => timeline.show(moment);
    return timeline;
  });
  mount(boxes.before_timeline, () =>
    mountTimeline(boxes.before_timeline, earlier, bytes, { least_ns, name: "before", is_second: report.timeline !== null }),
  );
  if (report.timeline !== null && earlier.timeline !== null) {
    const linked = new Linked(sharedWindow(report), report.timeline.start_ns, sharedWindow(earlier), earlier.timeline.start_ns);
    const box = h("input", {
      type: "checkbox",
      checked: true,
      change: () => {
        if (box.checked) linked.join();
        else linked.joined = false;
      },
    });
    boxes.both.replaceChildren(
      h("p", { class: "aside" }, "Both begin at the left edge and have one scale. ", h("label", {}, box, " they move together")),
    );
  }
  return show;
}

function icicleSection(report: Report, box: HTMLElement): HTMLElement | null {
  if (report.icicle === null) return null;
  return section(
    "where",
    "Where the time goes",
    report.icicle.parent.length <= 1 ? none("Neither ranges nor operators were recorded that launched device work.") : box,
  );
}

function sectionsOf(context: Context, boxes: Boxes): HTMLElement[] {
  const { report } = context;
  /** With `why`, a view that has nothing to show is a sentence and not left out. */
  const view = (
    id: string,
    title: string,
    make: (context: Context) => HTMLElement | null | (HTMLElement | null)[],
    why?: string,
  ): HTMLElement[] => {
    const made = guarded(id, title, () => make(context));
    return made.length > 0 || why === undefined ? made : [section(id, title, none(why))];
  };
  switch (report.kind) {
    case "ncu":
      return view("summary", "Summary", ncu, "This page holds no report of Nsight Compute.");
    case "ncu_compare":
      return view("summary", "Compared", ncuCompare, "This page holds no comparison of reports.");
    case "sums":
      return [
        ...view("summary", "Summary", summary),
        ...view("kernels", "Kernels", kernels),
        ...view("families", "Kernel families", families),
        ...view("ranges", "Ranges", ranges),
      ];
    case "trace":
    case "trace_compare":
      return [
        ...view("compare", "Compared", compare),
        ...view("summary", "Summary", summary),
        ...view("suspects", "Suspects", suspects, "This page holds no suspects: the first pass of this input is not in it."),
        ...view("questions", "Questions", questions),
        timelineSection(context, boxes),
        ...guarded("where", "Where the time goes", () => icicleSection(report, boxes.icicle)),
        ...view("steps", "Steps", steps, "Steps do not apply to this input."),
        ...view("idle", "Idle", idle, "Idle time does not apply to this input."),
        ...view("roofline", "Roofline", roofline, "The roofline does not apply to this input."),
        ...view("operators", "Operators", operators, "This page holds no operators."),
        ...view("kernels", "Kernels", kernels, "This page holds no kernels."),
        ...view("families", "Kernel families", families, "This page holds no kernel families."),
        ...view("ranges", "Ranges", ranges, "This page holds no ranges."),
        ...view("memory", "Memory", (one) => memory(one, boxes.curves), "Memory does not apply to this input."),
        ...view("before", "Before", before),
      ];
    default:
      return [section("summary", "Summary", none(`This page's script does not know reports of the kind ${String(report.kind)}.`))];
  }
}

/** Of a comparison: the first page of the trace before, closed until asked for. */
function before(context: Context): HTMLElement | null {
  if (context.before === null) return null;
  const earlier = new Context(
    { ...context.report, documents: context.before, before: null, timeline: null, before_timeline: null, moments: [], cuts: [] },
    () => {},
  );
  const parts = [
    summary(earlier),
    suspects(earlier),
    questions(earlier),
    steps(earlier),
    idle(earlier),
    operators(earlier),
    kernels(earlier),
  ].filter((one) => one !== null);
  // Names of places must be once in a page.
  for (const part of parts) {
    part.id = `before-${part.id}`;
    part.removeAttribute("aria-labelledby");
    part.querySelector("h2")?.removeAttribute("id");
  }
  return section(
    "before",
    "Before",
    h("p", { class: "aside" }, "All above but the comparison and the lower timeline is of the trace after. This is the trace before."),
    details("the trace before", false, parts),
  );
}

function themeButton(): HTMLElement {
  const label = (): string => (theme() === "dark" ? "light" : "dark");
  const button = h("button", { type: "button", class: "theme", click: toggleTheme }, label());
  const tell = (): void => {
    setText(button, label());
    button.setAttribute("aria-label", `use ${label()} colours`);
  };
  tell();
  onTheme(tell);
  return button;
}

/** Marks the section being read, without a listener for each scroll. */
function follow(links: Map<string, HTMLAnchorElement>, sections: HTMLElement[]): void {
  const seen = new Set<string>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) seen.add(entry.target.id);
        else seen.delete(entry.target.id);
      }
      const current = sections.find((one) => seen.has(one.id));
      for (const [id, link] of links) {
        if (id === current?.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-10% 0px -75% 0px" },
  );
  for (const one of sections) observer.observe(one);
}

export function mountPage(body: HTMLElement, report: Report, bytes: Uint8Array): void {
  document.title = `${report.title} \u00b7 longpole`;
  const boxes = {
    timeline: h("div", { class: "canvas-box" }),
    before_timeline: h("div", { class: "canvas-box" }),
    both: h("div"),
    icicle: h("div", { class: "canvas-box" }),
    curves: h("div", { class: "canvas-box" }),
  };
  let showMoment: (moment: Moment) => void = () => {};
  const context = new Context(report, (moment) => {
    const target = document.getElementById("timeline");
    target?.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "start" });
    target?.focus({ preventScroll: true });
    showMoment(moment);
  });
  const sections = sectionsOf(context, boxes);
  const links = new Map(sections.map((one) => [one.id, h("a", { href: `#${one.id}` }, one.querySelector("h2")?.textContent ?? one.id)]));
  const titles: Record<Report["kind"], string> = {
    trace: "trace",
    trace_compare: "two traces compared",
    ncu: "Nsight Compute report",
    ncu_compare: "two Nsight Compute reports compared",
    sums: "totals",
  };
  body.append(
    h("a", { class: "skip", href: "#main" }, "skip to the report"),
    h(
      "header",
      { class: "top" },
      h("h1", {}, report.title),
      h("p", { class: "aside" }, `${titles[report.kind] ?? ""} \u00b7 ${report.made_by}`),
      themeButton(),
    ),
    h("nav", { "aria-label": "sections" }, h("ul", {}, [...links.values()].map((link) => h("li", {}, link)) as Child)),
    h("main", { id: "main", tabindex: "-1" }, sections),
    h("footer", {}, h("p", {}, `${report.made_by} \u00b7 everything is in this file: it asks nothing of any network`)),
  );
  // Canvases measure their box, so they are mounted once it stands in the page.
  const drawn: Drawn[] = [];
  const mount = (box: HTMLElement, make: () => Drawn): void => {
    if (!box.isConnected) return;
    try {
      drawn.push(make());
    } catch (error) {
      console.error(error);
      box.replaceChildren(
        h(
          "p",
          { role: "alert", class: "broken" },
          `This part could not be shown: ${error instanceof Error ? error.message : String(error)}`,
        ),
      );
    }
  };
  if (report.before_timeline === undefined) {
    mount(boxes.timeline, () => {
      const timeline = mountTimeline(boxes.timeline, report, bytes);
      showMoment = (moment) => timeline.show(moment);
      return timeline;
    });
  } else showMoment = mountBoth(boxes, report, bytes, mount) ?? showMoment;
  mount(boxes.icicle, () => mountIcicle(boxes.icicle, report));
  mount(boxes.curves, () => mountCurves(boxes.curves, report, bytes));
  onTheme(() => {
    for (const view of drawn) view.redraw();
  });
  follow(links, sections);
  // The address may name a section that was not there when the page was loaded.
  if (location.hash.length > 1) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  // Paper shows what a reader would have opened.
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((one) => one instanceof HTMLDetailsElement);
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    opened = [];
  });
}
