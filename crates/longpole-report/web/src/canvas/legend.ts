/** What colours and patterns mean: families and causes that this page shows, each with its mark, pattern and word. */

import { h } from "../text";
import type { Inks } from "./ink";
import { causeMeaning } from "./words";

/** Left half with the mark, right half with the pattern. */
const SWATCH = 16;

function swatch(inks: Inks, fill: number): HTMLCanvasElement {
  const canvas = h("canvas", { "aria-hidden": "true", class: "lp-swatch" });
  const ratio = Math.min(3, Math.max(1, globalThis.devicePixelRatio || 1));
  canvas.width = 2 * SWATCH * ratio;
  canvas.height = SWATCH * ratio;
  const ctx = canvas.getContext("2d");
  const look = inks.fills[fill];
  if (ctx === null || look === undefined) return canvas;
  ctx.scale(ratio, ratio);
  ctx.fillStyle = look.colour;
  ctx.fillRect(0, 0, 2 * SWATCH, SWATCH);
  if (look.pattern !== null) {
    ctx.fillStyle = look.pattern;
    ctx.fillRect(SWATCH, 0, SWATCH, SWATCH);
  }
  ctx.fillStyle = look.text;
  ctx.font = "11px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(look.glyph, SWATCH / 2, SWATCH / 2 + 0.5);
  return canvas;
}

/** `families` and `causes` with the numbers of their fills. */
export function legend(inks: Inks, families: { name: string; fill: number }[], causes: { name: string; fill: number }[]): HTMLElement {
  const list = (title: string, entries: { name: string; fill: number }[], words: (name: string) => string) =>
    entries.length > 0 &&
    h(
      "div",
      { class: "lp-legend-list" },
      h("h3", {}, title),
      h(
        "ul",
        {},
        entries.map(({ name, fill }) => h("li", { title: words(name) || null }, swatch(inks, fill), ` ${name}`)),
      ),
    );
  return h("div", { class: "lp-legend" }, list("Device work (cool colours)", families, () => ""), list("Idle, by cause (warm colours)", causes, causeMeaning));
}
