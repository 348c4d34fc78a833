/** Names as they fit into a picture. Every name passes through `visible` here, before it is measured or drawn. */

import type { Report } from "../data";
import { visible } from "../text";

/** Longer names are cut before they are looked at; a C++ name's head comes first. */
const MOST = 4000;

/**
 * The function that a kernel's signature names, without namespaces, template and call arguments:
 * `void at::native::reduce_kernel<512, 1>(at::Args)` is `reduce_kernel`. Names that are no signature stay as they are.
 */
export function shortName(name: string): string {
  const text = visible(name.length > MOST ? name.slice(0, MOST) : name);
  if (!/[<(]/.test(text)) return text;
  let depth = 0;
  let head = "";
  let angles = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (depth === 0 && c === "(") {
      // `(anonymous namespace)::f` is a scope, not arguments.
      const scope = /^\([^()]*\)::/.exec(text.slice(i, i + 60));
      // A call's arguments follow its name without a space: `Memcpy HtoD (Pinned -> Device)` is no call.
      if (scope === null && (i === 0 || text[i - 1] === " ")) return text;
      if (scope === null) break;
      i += scope[0].length - 1;
      continue;
    }
    if (c === "<" || c === "(" || c === "{" || c === "[") depth += 1;
    if (depth === 0) head += c;
    if (c === "<") angles = true;
    if (c === ">" || c === ")" || c === "}" || c === "]") depth = Math.max(0, depth - 1);
  }
  const parts = head.trim().split(/::|\s+/);
  const last = parts[parts.length - 1] ?? "";
  // Without arguments of either kind in balance this was no signature after all.
  if (last === "" || (!angles && !text.includes("("))) return text;
  // `gemvx::kernel` says something, `kernel` does not.
  const scope = parts[parts.length - 2] ?? "";
  return /^(device_)?kernel\d?$/i.test(last) && scope !== "" && scope !== "void" ? `${scope}::${last}` : last;
}

/** What the program's own tables call these kernels, by full name. */
export function knownShortNames(report: Report): Map<string, string> {
  const kernels: unknown = report.documents.triage?.kernels;
  const known = new Map<string, string>();
  if (!Array.isArray(kernels)) return known;
  for (const kernel of kernels as { name?: unknown; short_name?: unknown }[]) {
    if (typeof kernel?.name === "string" && typeof kernel.short_name === "string") known.set(kernel.name, visible(kernel.short_name));
  }
  return known;
}

/** How wide texts are in one font, by the sum of their characters' widths. */
export class TextFit {
  private readonly widths = new Map<string, number>();
  private readonly ellipsis: number;

  /** `measure` is the canvas's; it is asked once for each character. */
  constructor(private readonly measure: (text: string) => number) {
    this.ellipsis = measure("\u2026");
  }

  private widthOf(c: string): number {
    let width = this.widths.get(c);
    if (width === undefined) {
      width = this.measure(c);
      // A trace may hold every character there is.
      if (this.widths.size < 5000) this.widths.set(c, width);
    }
    return width;
  }

  width(text: string): number {
    let width = 0;
    for (const c of text) width += this.widthOf(c);
    return width;
  }

  /** `text`, cut with an ellipsis to at most `most` pixels; empty when not even two characters fit. */
  fit(text: string, most: number): string {
    let width = 0;
    let kept = 0;
    let characters = 0;
    let at = 0;
    for (const c of text) {
      width += this.widthOf(c);
      at += c.length;
      if (width + this.ellipsis <= most) {
        kept = at;
        characters += 1;
      } else if (width > most) {
        return characters < 2 ? "" : `${text.slice(0, kept)}\u2026`;
      }
    }
    return text;
  }
}
