import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CAUSE_LOOKS, FAMILY_LOOKS } from "../src/palette";

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

type Three = [number, number, number];

const linear = (hex: string): Three =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Three;

const times = (matrix: number[][], [x, y, z]: Three): Three =>
  matrix.map(([a, b, c]) => (a as number) * x + (b as number) * y + (c as number) * z) as Three;

/** What is seen, as linear light: the matrices of Machado, Oliveira and Fernandes 2009 for the whole loss of one kind of cone. */
const SIGHTS: Record<string, number[][]> = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** Oklab (Ottosson 2020), in which distances are about as large as they look; the least that is seen is about 0.02. */
function oklab(light: Three): Three {
  const lms = times(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]],
    light,
  ).map((value) => Math.cbrt(Math.max(value, 0))) as Three;
  return times(
    [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]],
    lms,
  );
}

/** The least distance of two colours of different places in the lists, for someone's sight. */
function least(sight: string, some: string[], others: string[]): number {
  const seen = (hex: string): Three => oklab(times(SIGHTS[sight] as number[][], linear(hex)).map((value) => Math.min(1, Math.max(0, value))) as Three);
  const [a, b] = [some.map(seen), others.map(seen)];
  const distances = a.flatMap((x, i) => b.filter((_, j) => some !== others || i < j).map((y) => Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2])));
  return Math.min(...distances);
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

  it.each([
    ["normal", 0.07, 0.085],
    ["protanopia", 0.06, 0.045],
    ["deuteranopia", 0.06, 0.045],
    ["tritanopia", 0.04, 0.04],
  ])("tells work from idle time, and families and causes apart, with %s sight", (sight, across, within) => {
    const ramp = (kind: string): string[] => [...theme].filter(([name]) => name.startsWith(kind)).map(([, colour]) => colour);
    const [families, causes] = [ramp("family-"), ramp("cause-")];
    expect(least(sight, families, causes), "work and idle time").toBeGreaterThanOrEqual(across);
    expect(least(sight, families, families), "families").toBeGreaterThanOrEqual(within);
    expect(least(sight, causes, causes), "causes").toBeGreaterThanOrEqual(within);
  });
});

describe("families and causes", () => {
  it.each([["families", FAMILY_LOOKS], ["causes", CAUSE_LOOKS]])("have a mark of their own each: %s", (_, looks) => {
    const marks = Object.values(looks).map((look) => look.glyph);
    expect(new Set(marks).size).toBe(marks.length);
  });
});

describe("the themes", () => {
  it("have the same tokens", () => {
    expect([...tokens(':root[data-theme="dark"]').keys()]).toEqual([...tokens(":root").keys()]);
  });
});
