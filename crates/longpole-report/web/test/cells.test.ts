import { describe, expect, it } from "vitest";
import { format, matcher, plain, sorted } from "../src/cells";

describe("sorted", () => {
  const rows = [{ v: 2 }, { v: null }, { v: 10 }, { v: 2 }, { v: 1 }];
  const value = (row: { v: number | null }): number | null => row.v;

  it("puts what is missing last either way, and keeps equal rows in order", () => {
    expect(sorted(rows, value, true).map(value)).toEqual([10, 2, 2, 1, null]);
    expect(sorted(rows, value, false).map(value)).toEqual([1, 2, 2, 10, null]);
    expect(sorted(rows, value, false)[1]).toBe(rows[0]);
  });

  it("orders texts by their characters", () => {
    expect(sorted(["b", "a", "B"], (text) => text, false)).toEqual(["B", "a", "b"]);
  });

  it("does not touch the rows that it was given", () => {
    const before = [...rows];
    sorted(rows, value, true);
    expect(rows).toEqual(before);
  });
});

describe("matcher", () => {
  it("finds text in either case, and regular expressions between slashes", () => {
    expect(matcher("ATEN")?.("aten::mm")).toBe(true);
    expect(matcher("/^aten::m/")?.("aten::mm")).toBe(true);
    expect(matcher("/^ATEN/")?.("aten::mm")).toBe(false);
    expect(matcher("/^ATEN/i")?.("aten::mm")).toBe(true);
    expect(matcher("a.b")?.("axb")).toBe(false);
    expect(matcher("/(/")).toBeNull();
  });
});

describe("format", () => {
  it("uses one unit for a column and a dash for what is missing", () => {
    expect(format("time", 1_500, 20_000_000)).toBe("0.002");
    expect(format("time", null, 20_000_000)).toBe("\u2013");
    expect(format("percent", 0.5, 1)).toBe("50.0");
    expect(format("count", 12_345, 0)).toBe("12,345");
  });
});

describe("plain", () => {
  it("keeps a cell on one line and nothing that a spreadsheet would run", () => {
    expect(plain("a\tb\nc")).toBe("a b c");
    expect(plain("=cmd()")).toBe("'=cmd()");
    expect(plain("-<0.01")).toBe("-<0.01");
    expect(plain("-1,024")).toBe("-1,024");
    expect(plain("@x")).toBe("'@x");
  });
});
