import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const css = readFileSync(new URL("../src/theme.css", import.meta.url), "utf8");

/** Tokens of a theme, by name. */
function tokens(selector: string): Map<string, string> {
  const block = css.slice(css.indexOf(`${selector} {`));
  return new Map(
    [...block.slice(0, block.indexOf("}")).matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [
      name as string,
      value as string,
    ]),
  );
}

/** Relative luminance, as WCAG 2 defines it. */
function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

describe.each([
  ["light", ":root"],
  ["dark", ':root[data-theme="dark"]'],
])("the %s theme", (_, selector) => {
  const theme = tokens(selector);
  const at = (name: string): string => theme.get(name) ?? "none";

  it("has texts that can be read on every ground", () => {
    for (const text of ["ink", "ink-soft", "ink-faint", "accent", "good", "noted", "bad"]) {
      for (const ground of ["ground", "raised"]) expect(contrast(at(text), at(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
    for (const text of ["ink", "ink-soft"])
      for (const ground of ["sunken", "accent-ground"])
        expect(contrast(at(text), at(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
  });

  it("has a focus mark and lines of controls that can be seen", () => {
    expect(contrast(at("focus"), at("ground"))).toBeGreaterThanOrEqual(3);
  });

  it("has a colour of its own for each family and each cause", () => {
    for (const kind of ["family-", "cause-"]) {
      const colours = [...theme].filter(([name]) => name.startsWith(kind)).map(([, colour]) => colour);
      expect(colours.length).toBe(kind === "family-" ? 12 : 14);
      expect(new Set(colours).size).toBe(colours.length);
    }
  });
});

describe("the themes", () => {
  it("have the same tokens", () => {
    expect([...tokens(':root[data-theme="dark"]').keys()]).toEqual([...tokens(":root").keys()]);
  });
});
