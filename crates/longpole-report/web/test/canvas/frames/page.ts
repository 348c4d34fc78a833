/** The canvas views alone, on a made run of which the address says the size: `#kernels=20000&threads=40`. */

import "../../../src/theme.css";
import { mountCurves } from "../../../src/canvas/curves";
import { mountIcicle } from "../../../src/canvas/icicle";
import { mountTimeline } from "../../../src/canvas/timeline";
import { h } from "../../../src/text";
import { makeRun } from "../synthetic";

const asked = new URLSearchParams(location.hash.slice(1));
const number = (name: string, otherwise: number) => Number(asked.get(name) ?? otherwise);
document.documentElement.dataset["theme"] = asked.get("theme") ?? "light";
document.body.style.cssText = "margin: 8px; font: 14px/1.45 system-ui, sans-serif; background: var(--ground); color: var(--ink)";
const { report, bytes } = makeRun({
  window_ns: number("window_ns", 60e9),
  devices: number("devices", 2),
  streams: number("streams", 4),
  threads: number("threads", 8),
  kernels: number("kernels", 2000),
  kept: number("kept", 0.3),
});
if (asked.has("damaged")) report.timeline!.lanes.find(({ kind }) => kind === "stream")!.events.start.at = bytes.length;
const boxes = [h("div"), h("div"), h("div")] as const;
document.body.append(...boxes);
const began = performance.now();
const timeline = mountTimeline(boxes[0], report, bytes);
document.body.dataset["mountMs"] = String(performance.now() - began);
mountCurves(boxes[1], report, bytes);
mountIcicle(boxes[2], report);
document.body.dataset["events"] = String(report.timeline!.events_kept);
document.body.dataset["lanes"] = String(report.timeline!.lanes.length);
Object.assign(globalThis, { timeline, report });
