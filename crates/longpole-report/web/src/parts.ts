/** Pieces that several views are made of. */
import { type Look } from "./palette";
import { type Child, h } from "./text";
import { MISSING, percents } from "./units";

/** A labelled figure; `aside` says what it is of. */
export interface Figure {
  label: string;
  value: Child;
  aside?: Child;
}

export function figures(list: Figure[], kind = "figures"): HTMLElement {
  return h(
    "dl",
    { class: kind },
    list.map(({ label, value, aside }) =>
      h(
        "div",
        {},
        h("dt", {}, label),
        h("dd", {}, value, aside === undefined || aside === null ? null : h("span", { class: "aside" }, aside)),
      ),
    ),
  );
}

/** A coloured square with a glyph and a pattern, for legends and rows. */
export function swatch(look: Look): HTMLElement {
  const square = h("span", { class: `swatch pattern-${look.pattern}`, "aria-hidden": "true" });
  square.style.setProperty("--colour", `var(${look.token})`);
  return square;
}

export interface Segment {
  label: string;
  value: number;
  look: Look;
  /** The value in words. */
  text: string;
  /** After the share, in the legend. */
  aside?: Child;
}

/** Parts of a whole as one bar with a legend that has every part's figure. Parts of nothing are left out. */
export function stack(name: string, segments: Segment[], whole: number, wholeName: string): HTMLElement {
  const there = segments.filter((segment) => segment.value > 0);
  const bar = h("div", {
    class: "stack",
    role: "img",
    "aria-label": `${name}: ${there.map((one) => `${one.label} ${one.text}`).join(", ")}`,
  });
  for (const segment of there) {
    const part = h("span", { class: `pattern-${segment.look.pattern}`, title: `${segment.label}: ${segment.text}` });
    part.style.setProperty("--colour", `var(${segment.look.token})`);
    part.style.width = `${(100 * segment.value) / Math.max(whole, 1)}%`;
    bar.append(part);
  }
  const legend = h(
    "ul",
    { class: "legend" },
    there.map((segment) =>
      h(
        "li",
        {},
        swatch(segment.look),
        h("span", { class: "legend-label" }, segment.label),
        h("span", { class: "legend-value" }, segment.text),
        h(
          "span",
          { class: "legend-share" },
          whole > 0 ? [percents(segment.value / whole), h("span", { class: "of" }, ` of ${wholeName}`)] : MISSING,
        ),
        segment.aside,
      ),
    ),
  );
  return h("div", { class: "stacked" }, bar, legend);
}

/** A bar of a share 0..1 with its text. */
export function meter(share: number | null, text: string, label: string): HTMLElement {
  const bar = h("span", { class: "meter", role: "img", "aria-label": `${label}: ${text}` });
  bar.style.setProperty("--share", String(Math.max(0, Math.min(1, share ?? 0))));
  return h("span", { class: "metered" }, bar, h("span", { class: "meter-text", "aria-hidden": "true" }, text));
}

/** A sentence in which commands stand between backquotes. */
export function prose(text: string): Child {
  return text.split(/(`[^`]+`)/).map((part) => (/^`[^`]+`$/.test(part) ? h("code", {}, part.slice(1, -1)) : part));
}

export function none(sentence: string): HTMLElement {
  return h("p", { class: "none" }, sentence);
}

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title`, tabindex: "-1" }, h("h2", { id: `${id}-title` }, title), children);
}

/** A part that is closed until asked for. */
export function details(summary: Child, open: boolean, ...children: Child[]): HTMLDetailsElement {
  return h("details", { open }, h("summary", {}, summary), h("div", { class: "details-body" }, children));
}

/** `verdict` with a mark of its own, so that it is not told by colour alone. */
export function verdict(word: string | null, presence = "both"): HTMLElement {
  const said = word ?? (presence === "both" ? MISSING : presence);
  const marks: Record<string, string> = { FASTER: "\u25bc", SLOWER: "\u25b2", SAME: "=", AMBIGUOUS: "?", new: "+", gone: "\u2212" };
  return h(
    "span",
    { class: `verdict verdict-${said.toLowerCase().replace(/[^a-z]/g, "")}` },
    Object.hasOwn(marks, said) ? `${marks[said]} ` : "",
    said,
  );
}
