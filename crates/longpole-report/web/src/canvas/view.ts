/** What part of the window is in view: pure arithmetic over `[a, b]` in nanoseconds. */

export interface View {
  a: number;
  b: number;
}

/** Narrowest view. Kernels take a microsecond and more; this shows one in full width with its surroundings. */
export const LEAST_SPAN_NS = 100;

/** `view` moved and shortened so that it lies in `whole` and is not too narrow. */
export function clampView(view: View, whole: View): View {
  const most = whole.b - whole.a;
  const span = Math.min(most, Math.max(Math.min(LEAST_SPAN_NS, most), view.b - view.a));
  // A view that was too narrow grows around its middle.
  const grown = view.b - view.a < span ? (view.a + view.b) / 2 - span / 2 : view.a;
  const a = Math.min(Math.max(whole.a, grown), whole.b - span);
  return { a, b: a + span };
}

/** Zoomed by `factor` (below 1: closer) so that time `at` keeps its place on screen. */
export function zoomAt(view: View, factor: number, at: number, whole: View): View {
  const most = whole.b - whole.a;
  const span = Math.min(most, Math.max(Math.min(LEAST_SPAN_NS, most), (view.b - view.a) * factor));
  const share = (at - view.a) / (view.b - view.a);
  const a = at - share * span;
  return clampView({ a, b: a + span }, whole);
}

/** Moved by `by` nanoseconds, stopped at the window's ends. */
export function panBy(view: View, by: number, whole: View): View {
  return clampView({ a: view.a + by, b: view.b + by }, whole);
}

/** A view of `[from, to]` with a margin of a share of its length at each side. */
export function around(from: number, to: number, margin: number, whole: View): View {
  const length = Math.max(to - from, LEAST_SPAN_NS);
  const middle = (from + to) / 2;
  const half = length * (0.5 + margin);
  return clampView({ a: middle - half, b: middle + half }, whole);
}

/** Moved no further than needed for `[from, to]` to be seen; zoomed out only when it does not fit. */
export function revealed(view: View, from: number, to: number, whole: View): View {
  const span = view.b - view.a;
  if (to - from > span) return around(from, to, 0.1, whole);
  const margin = Math.min(span * 0.1, (span - (to - from)) / 2);
  if (from - margin < view.a) return panBy(view, from - margin - view.a, whole);
  if (to + margin > view.b) return panBy(view, to + margin - view.b, whole);
  return view;
}

/** Both fingers of a pinch keep the times they were put on. `x0`, `x1` in pixels from the left edge, `width` of the view in pixels. */
export function pinched(t0: number, t1: number, x0: number, x1: number, width: number, whole: View): View {
  const apart = Math.max(8, Math.abs(x1 - x0));
  const ns_per_px = Math.abs(t1 - t0) / apart;
  const middle_t = (t0 + t1) / 2;
  const middle_x = (x0 + x1) / 2;
  const a = middle_t - middle_x * ns_per_px;
  return clampView({ a, b: a + width * ns_per_px }, whole);
}

/** A view on its way from one place to another, at `share` 0..1 of the way; spans change geometrically, so that zooming looks even. */
export function between(from: View, to: View, share: number): View {
  const ease = share * share * (3 - 2 * share);
  const span0 = from.b - from.a;
  const span1 = to.b - to.a;
  const span = span0 * (span1 / span0) ** ease;
  // The middle moves in step with the span, else a far target would rush through the view at the end.
  const moved = Math.abs(span1 - span0) < 1e-9 * span0 ? ease : (span - span0) / (span1 - span0);
  const middle = (from.a + from.b) / 2 + ((to.a + to.b) / 2 - (from.a + from.b) / 2) * moved;
  return { a: middle - span / 2, b: middle + span / 2 };
}
