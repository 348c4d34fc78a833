import { describe, expect, it } from "vitest";
import { shorten, visible } from "../src/text";

describe("visible", () => {
  it("writes out what would be invisible or move its surroundings", () => {
    expect(visible("a\u202eb")).toBe("a\u27e8U+202E\u27e9b");
    expect(visible("\u001b[31mred\u0000\u0085")).toBe("\u27e8U+001B\u27e9[31mred\u27e8U+0000\u27e9\u27e8U+0085\u27e9");
    expect(visible("\u2066x\u2069\u200b\ufeff\u061c")).toBe(
      "\u27e8U+2066\u27e9x\u27e8U+2069\u27e9\u27e8U+200B\u27e9\u27e8U+FEFF\u27e9\u27e8U+061C\u27e9",
    );
    expect(visible("line\nbreak\ttab")).toBe("line\u27e8U+000A\u27e9break\u27e8U+0009\u27e9tab");
    expect(visible("\u{e0041}")).toBe("\u27e8U+E0041\u27e9");
    expect(visible("\ud800")).toBe("\u27e8U+D800\u27e9");
  });

  it("leaves every other name as it is", () => {
    for (const name of ["aten::mm", "</script><b>&amp;", "\u6838\u5fc3 \u05d0\u05d1 \u{1f600}", "${x} `y` 'z' \"w\""])
      expect(visible(name)).toBe(name);
  });
});

describe("shorten", () => {
  it("keeps both ends and the length", () => {
    expect(shorten("short", 10)).toBe("short");
    expect(shorten("0123456789abcdef", 9)).toBe("01234\u2026def");
    expect(Array.from(shorten("x".repeat(100_000), 48))).toHaveLength(48);
  });

  it("does not cut a character in two", () => {
    expect(shorten("\u{1f600}".repeat(20), 5)).toBe("\u{1f600}\u{1f600}\u{1f600}\u2026\u{1f600}");
  });
});
