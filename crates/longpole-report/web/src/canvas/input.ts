/**
 * Pointers, wheel and keys of the timeline.
 *
 * The page must stay scrollable with the pointer over the timeline, so a plain wheel is never taken: it scrolls the lanes and then
 * the page, as everywhere. Ctrl (or the command key) with the wheel zooms at the pointer, Shift with the wheel or a sideways wheel pans.
 */

import type { TimelineState } from "./state";
import { panBy, pinched, type View } from "./view";

/** What the input needs to know of the picture. */
export interface Picture {
  canvas: HTMLCanvasElement;
  scroller: HTMLElement;
  left(): number;
  right(): number;
  /** Time at `x` pixels from the canvas's left edge. */
  timeAt(x: number): number;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  hover(x: number | null, y: number): void;
  keysList(): void;
  search(): void;
}

/** A pointer that moved less has not dragged. */
const DRAG_PX = 4;
/** Zoom of one notch of a wheel, which browsers give as 100 to 120. */
const WHEEL_ZOOM = 1.0018;

interface Finger {
  x: number;
  y: number;
  /** Time it was put on. */
  t: number;
}

export function listen(state: TimelineState, picture: Picture): void {
  listenPointer(state, picture);
  picture.canvas.addEventListener("wheel", (event) => wheel(state, picture, event), { passive: false });
  picture.canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (key(state, picture, event.key, event.shiftKey)) event.preventDefault();
  });
}

function point(picture: Picture, event: MouseEvent): { x: number; y: number } {
  const box = picture.canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

export function wheel(state: TimelineState, picture: Picture, event: WheelEvent): void {
  // Lines and pages in pixels, as browsers that count pixels would give them.
  const unit = event.deltaMode === 1 ? 33 : event.deltaMode === 2 ? 400 : 1;
  const zooms = event.ctrlKey || event.metaKey;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!zooms && !sideways) return;
  event.preventDefault();
  const ns_per_px = (state.view.b - state.view.a) / Math.max(1, picture.right() - picture.left());
  if (zooms) {
    const { x } = point(picture, event);
    // A pinch on a touchpad arrives as small steps with Ctrl, and means more by each.
    const strength = Math.abs(event.deltaY) < 50 ? 5 : 1;
    state.zoom(WHEEL_ZOOM ** (event.deltaY * unit * strength), picture.timeAt(Math.max(picture.left(), x)));
  } else state.setView(panBy(state.view, (event.deltaX || event.deltaY) * unit * ns_per_px, state.whole));
}

/** Whether the key meant something. */
export function key(state: TimelineState, picture: Pick<Picture, "keysList" | "search">, pressed: string, shift: boolean): boolean {
  const far = shift ? 4 : 1;
  const actions: Record<string, () => void> = {
    ArrowLeft: () => state.pan(-0.15 * far),
    ArrowRight: () => state.pan(0.15 * far),
    ArrowUp: () => state.stepLane(-1),
    ArrowDown: () => state.stepLane(1),
    "+": () => state.zoom(1 / 1.5),
    "=": () => state.zoom(1 / 1.5),
    "-": () => state.zoom(1.5),
    _: () => state.zoom(1.5),
    Home: () => state.home(),
    n: () => state.stepEvent(1),
    p: () => state.stepEvent(-1),
    Enter: () => state.enter(),
    l: () => state.follow(),
    m: () => state.setRange(state.view),
    g: () => state.toggleGroup(state.groupOf(state.lane)),
    s: () => state.toggleLane(state.lane),
    Escape: () => state.clear(),
    "?": () => picture.keysList(),
    "/": () => picture.search(),
  };
  if (!Object.hasOwn(actions, pressed)) return false;
  actions[pressed]!();
  return true;
}

function listenPointer(state: TimelineState, picture: Picture): void {
  const { canvas, scroller } = picture;
  const fingers = new Map<number, Finger>();
  let dragged = false;
  let ranging = false;
  let begin = { x: 0, y: 0, top: 0, view: state.view };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const at = point(picture, event);
    fingers.set(event.pointerId, { ...at, t: picture.timeAt(at.x) });
    if (fingers.size === 1) {
      dragged = false;
      ranging = event.shiftKey && at.x >= picture.left();
      begin = { ...at, top: scroller.scrollTop, view: state.view };
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = point(picture, event);
    const finger = fingers.get(event.pointerId);
    if (finger === undefined) {
      if (event.pointerType === "mouse") picture.hover(at.x, at.y);
      return;
    }
    finger.x = at.x;
    finger.y = at.y;
    if (fingers.size === 2) {
      const [first, second] = [...fingers.values()] as [Finger, Finger];
      dragged = true;
      const left = picture.left();
      state.setView(pinched(first.t, second.t, first.x - left, second.x - left, picture.right() - left, state.whole));
      return;
    }
    if (!dragged && Math.hypot(at.x - begin.x, at.y - begin.y) < DRAG_PX) return;
    if (!dragged) {
      dragged = true;
      canvas.setPointerCapture(event.pointerId);
      picture.hover(null, 0);
    }
    if (ranging) state.setRange({ a: finger.t, b: picture.timeAt(Math.min(picture.right(), Math.max(picture.left(), at.x))) });
    else dragTo(state, picture, begin, at, event.pointerType === "mouse");
  });
  const end = (event: PointerEvent) => {
    const finger = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    // The finger that stays goes on from where it is.
    for (const left of fingers.values()) {
      left.t = picture.timeAt(left.x);
      begin = { x: left.x, y: left.y, top: scroller.scrollTop, view: state.view };
    }
    if (finger !== undefined && !dragged && event.type === "pointerup") picture.click(finger.x, finger.y);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => picture.hover(null, 0));
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = point(picture, event);
    picture.doubleClick(x, y);
  });
}

function dragTo(state: TimelineState, picture: Picture, begin: { x: number; y: number; top: number; view: View }, at: { x: number; y: number }, both: boolean): void {
  const ns_per_px = (begin.view.b - begin.view.a) / Math.max(1, picture.right() - picture.left());
  state.setView(panBy(begin.view, (begin.x - at.x) * ns_per_px, state.whole));
  // A finger scrolls up and down by the browser's own means.
  if (both) picture.scroller.scrollTop = begin.top + begin.y - at.y;
}

/** The overview: a press puts the view's middle there, a drag moves it; on the ruler a drag selects a range. */
export function listenHead(state: TimelineState, head: HTMLCanvasElement, left: () => number, right: () => number, ruler: number): void {
  let doing: "move" | "range" | null = null;
  let grip = 0;
  const time = (event: PointerEvent, over: View) => {
    const x = event.clientX - head.getBoundingClientRect().left;
    return over.a + (Math.min(1, Math.max(0, (x - left()) / Math.max(1, right() - left())))) * (over.b - over.a);
  };
  head.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    head.setPointerCapture(event.pointerId);
    const y = event.clientY - head.getBoundingClientRect().top;
    doing = y >= ruler ? "range" : "move";
    if (doing === "range") {
      grip = time(event, state.view);
      return;
    }
    const t = time(event, state.whole);
    const middle = (state.view.a + state.view.b) / 2;
    const held = t >= state.view.a && t <= state.view.b;
    grip = held ? middle - t : 0;
    if (!held) state.setView(panBy(state.view, t - middle, state.whole), { smooth: true });
  });
  head.addEventListener("pointermove", (event) => {
    if (doing === "range") state.setRange({ a: grip, b: time(event, state.view) });
    if (doing === "move") state.setView(panBy(state.view, time(event, state.whole) + grip - (state.view.a + state.view.b) / 2, state.whole));
  });
  const end = () => (doing = null);
  head.addEventListener("pointerup", end);
  head.addEventListener("pointercancel", end);
}
