/** What every view is given: the report with its documents' types, and the way to a moment. */
import type { Documents, Moment, Report } from "./data";
import type { Diff, Idle, Memory, Ncu, NcuCompare, Roofline, Steps, Triage } from "./documents";
import { type Child, h } from "./text";
import { count } from "./units";

/** The documents with the types of their schemas. Of sums the first page has the shape of a triage. */
export interface Typed extends Documents {
  triage?: Triage;
  steps?: Steps;
  idle?: Idle;
  roofline?: Roofline;
  memory?: Memory;
  diff?: Diff;
  ncu?: Ncu;
  ncu_compare?: NcuCompare;
  sums?: Triage;
}

export type Scope = Triage["scope"];

export class Context {
  readonly documents: Typed;
  readonly before: Typed | null;
  private readonly moments = new Map<string, Moment[]>();

  constructor(
    readonly report: Report,
    /** Goes to the timeline and shows a moment there. */
    private readonly show: (moment: Moment) => void,
  ) {
    this.documents = report.documents;
    this.before = report.before;
    for (const moment of report.moments) {
      const list = this.moments.get(moment.of);
      if (list === undefined) this.moments.set(moment.of, [moment]);
      else list.push(moment);
    }
  }

  momentsOf(of: string): Moment[] {
    return this.report.timeline === null ? [] : (this.moments.get(of) ?? []);
  }

  /** Buttons that show the moments of something. Nothing when the page has none. */
  buttons(of: string, label = "show"): Child {
    const moments = this.momentsOf(of);
    return moments
      .slice(0, 3)
      .map((moment) =>
        h(
          "button",
          { type: "button", class: "show", title: moment.label, click: () => this.show(moment) },
          moments.length === 1 ? label : moment.label,
        ),
      );
  }

  /** Buttons for every moment whose name starts so, e.g. the steps of a group. */
  buttonsOfAll(prefix: string, label: (rest: string, moment: Moment) => string): Child {
    if (this.report.timeline === null) return null;
    const found = this.report.moments.filter((moment) => moment.of.startsWith(prefix)).slice(0, 6);
    return found.map((moment) =>
      h(
        "button",
        { type: "button", class: "show", title: moment.label, click: () => this.show(moment) },
        label(moment.of.slice(prefix.length), moment),
      ),
    );
  }

  /** One small button for a row of a table. */
  rowButton(of: string, what: string): Child {
    const moment = this.momentsOf(of)[0];
    if (moment === undefined) return null;
    return h(
      "button",
      {
        type: "button",
        class: "show small",
        title: moment.label,
        "aria-label": `show ${what}: ${moment.label}`,
        click: () => this.show(moment),
      },
      "show",
    );
  }

  /** What the page says of a list that was shortened for it. */
  cut(...lists: string[]): string | null {
    const cut = this.report.cuts.find((one) => lists.includes(one.list));
    return cut === undefined ? null : `the page holds ${count(cut.kept)} of ${count(cut.of)}; the command's --json has all`;
  }
}
