/** The page's shell: sections in order, navigation, and what ties the views together. */
import { mountCurves } from "./canvas/curves";
import { mountIcicle } from "./canvas/icicle";
import { mountTimeline } from "./canvas/timeline";
import type { Report } from "./data";
import { h } from "./text";
import { onTheme } from "./theme";

export function mountPage(body: HTMLElement, report: Report, bytes: Uint8Array): void {
  const timelineBox = h("div");
  const icicleBox = h("div");
  const curvesBox = h("div");
  body.append(h("main", { id: "main" }, h("h1", {}, report.title), timelineBox, icicleBox, curvesBox));
  const views = [mountTimeline(timelineBox, report, bytes), mountIcicle(icicleBox, report), mountCurves(curvesBox, report, bytes)];
  onTheme(() => views.forEach((view) => view.redraw()));
}
