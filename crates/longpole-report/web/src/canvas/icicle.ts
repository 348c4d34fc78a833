import type { Report } from "../data";

/** Mounts the icicle of ranges, operators and kernels into `el`. */
export function mountIcicle(el: HTMLElement, _report: Report): { redraw(): void } {
  el.hidden = true;
  return { redraw() {} };
}
