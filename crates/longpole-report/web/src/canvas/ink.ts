/** Colours and patterns of the theme of the moment, ready for a canvas. Made anew at each change of theme or pixel ratio. */

import { causeLook, colour, familyLook, type Look } from "../palette";
import type { LaneKind } from "../data";
import type { Model } from "./model";

export interface Fill {
  colour: string;
  /** Colour of text on it. */
  text: string;
  pattern: CanvasPattern | null;
  glyph: string;
}

export interface Inks {
  ground: string;
  raised: string;
  sunken: string;
  line: string;
  line_strong: string;
  ink: string;
  ink_soft: string;
  ink_faint: string;
  accent: string;
  accent_ground: string;
  selected: string;
  focus: string;
  bad: string;
  /** Over blocks of which the detail was not kept. */
  hatch: CanvasPattern | null;
  fills: Fill[];
}

/** Numbers of the fills that belong to no family and no cause. */
export const FILL = { dim: 0, ranges: 1, ops: 2, calls: 3, steps: 4, rest: 5 } as const;
export const FIRST_FAMILY = 6;
/** Causes stand behind the families. */
export const firstCause = (families: number) => FIRST_FAMILY + families;

export function readInks(families: string[], causes: string[], ratio: number): Inks {
  const pattern_ink = colour("--pattern-ink") || "rgb(0 0 0 / 0.35)";
  const ink = colour("--ink") || "#171a21";
  const ground = colour("--ground") || "#ffffff";
  const token = (name: string, otherwise: string) => colour(name) || otherwise;
  const patterns = new Map<number, CanvasPattern | null>();
  const patternOf = (kind: number) => {
    if (!patterns.has(kind)) patterns.set(kind, makePattern(kind, pattern_ink, ratio));
    return patterns.get(kind)!;
  };
  const fill = (value: string, glyph: string, pattern: number): Fill => ({
    colour: value,
    text: readableOn(value),
    pattern: pattern === 0 ? null : patternOf(pattern),
    glyph,
  });
  const look = ({ token: name, glyph, pattern }: Look) => fill(token(name, "#9d988d"), glyph, pattern);
  return {
    ground,
    raised: token("--raised", "#f6f7f9"),
    sunken: token("--sunken", "#eceef2"),
    line: token("--line", "#d5d9e0"),
    line_strong: token("--line-strong", "#9aa2af"),
    ink,
    ink_soft: token("--ink-soft", "#4a5262"),
    ink_faint: token("--ink-faint", "#646d7d"),
    accent: token("--accent", "#0b5cad"),
    accent_ground: token("--accent-ground", "#e3effb"),
    selected: token("--selected", "#ffd54a"),
    focus: token("--focus", "#b4540a"),
    bad: token("--bad", "#b3261e"),
    hatch: makePattern(7, pattern_ink, ratio),
    fills: [
      fill(token("--sunken", "#eceef2"), "", 0),
      fill(token("--accent-ground", "#e3effb"), "", 0),
      fill(token("--bar", "#7ea6d0"), "", 0),
      fill(token("--line-strong", "#9aa2af"), "", 0),
      fill(token("--ink-soft", "#4a5262"), "", 0),
      fill(token("--line", "#d5d9e0"), "", 0),
      ...families.map((family) => look(familyLook(family))),
      ...causes.map((cause) => look(causeLook(cause))),
    ],
  };
}

/** Names of idle causes: those that gap lanes show, in order of number. */
export function causesOf(model: Model): number[] {
  const seen = new Set<number>();
  for (const lane of model.lanes) if (lane.lane.kind === "gaps") for (const name of lane.events().name) seen.add(name);
  for (const lane of model.lanes) {
    if (lane.lane.kind === "gaps") lane.lane.levels.forEach((_, k) => lane.level(k).name.forEach((name) => seen.add(name)));
  }
  return [...seen].sort((x, y) => x - y);
}

/** Fill by name, for lanes of each kind: the family of device work, the cause of gaps, else the lane's own. */
export function fillTable(model: Model, causes: number[]): Record<LaneKind, Uint16Array> {
  const names = model.timeline.names.length;
  const plain = (fill: number) => new Uint16Array(names).fill(fill);
  const families = model.timeline.families.length;
  const device = Uint16Array.from(model.timeline.names, (_, name) => {
    const family = model.family(name);
    return family >= 0 && family < families ? FIRST_FAMILY + family : FILL.rest;
  });
  const gaps = plain(FILL.rest);
  causes.forEach((name, k) => (gaps[name] = firstCause(families) + k));
  return { steps: plain(FILL.steps), ranges: plain(FILL.ranges), ops: plain(FILL.ops), calls: plain(FILL.calls), stream: device, gaps };
}

/** Black or white, whichever is told better from `value`. */
export function readableOn(value: string): string {
  const rgb = parse(value);
  if (rgb === null) return "#000000";
  // Relative luminance of WCAG 2, sections "relative luminance" and "contrast ratio".
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
}

function parse(value: string): [number, number, number] | null {
  const hex = /^#([0-9a-f]{6})$/i.exec(value.trim());
  if (hex === null) return null;
  const n = Number.parseInt(hex[1]!, 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

/** Patterns by number as `Look.pattern` gives them; 7: wide falling lines, for what was not kept. */
function makePattern(kind: number, ink: string, ratio: number): CanvasPattern | null {
  const tile = document.createElement("canvas");
  const side = Math.round((kind === 7 ? 12 : 8) * ratio);
  tile.width = side;
  tile.height = side;
  const ctx = tile.getContext("2d");
  if (ctx === null) return null;
  ctx.strokeStyle = ink;
  ctx.fillStyle = ink;
  ctx.lineWidth = Math.max(1, (kind === 7 ? 2 : 1.2) * ratio);
  const lines = (...ends: [number, number, number, number][]) => {
    ctx.beginPath();
    for (const [x0, y0, x1, y1] of ends) {
      ctx.moveTo(x0 * side, y0 * side);
      ctx.lineTo(x1 * side, y1 * side);
    }
    ctx.stroke();
  };
  const rising: [number, number, number, number][] = [[-0.5, 0.5, 0.5, -0.5], [-0.25, 1.25, 1.25, -0.25], [0.5, 1.5, 1.5, 0.5]];
  const falling = rising.map(([x0, y0, x1, y1]) => [1 - x0, y0, 1 - x1, y1] as [number, number, number, number]);
  if (kind === 1 || kind === 6) lines(...rising);
  if (kind === 2 || kind === 6 || kind === 7) lines(...falling);
  if (kind === 4) lines([0, 0.5, 1, 0.5]);
  if (kind === 5) lines([0.5, 0, 0.5, 1]);
  if (kind === 3) {
    for (const [x, y] of [[0.25, 0.25], [0.75, 0.75]] as const) ctx.fillRect((x - 0.1) * side, (y - 0.1) * side, 0.22 * side, 0.22 * side);
  }
  const pattern = ctx.createPattern(tile, "repeat");
  // Tiles are made in device pixels, what they fill is measured in CSS pixels.
  pattern?.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}
