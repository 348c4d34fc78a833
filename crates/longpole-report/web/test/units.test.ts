import { describe, expect, it } from "vitest";
import {
  bytes,
  clock,
  columnScale,
  count,
  decimal,
  flopRate,
  inScale,
  mean,
  MISSING,
  percent,
  percents,
  plural,
  rate,
  time,
  words,
} from "../src/units";

// The same cases as in the commands' own units, so that page and terminal cannot drift apart.
describe("units", () => {
  it("takes a column's unit from its largest value", () => {
    const cases: [number, string][] = [
      [0, "ns"],
      [9_999, "ns"],
      [10_000, "us"],
      [9_999_999, "us"],
      [10_000_000, "ms"],
      [10_000_000_000, "s"],
    ];
    for (const [largest, label] of cases) expect(columnScale("time", largest).label).toBe(label);
    const sizes: [number, string][] = [
      [10_239, "B"],
      [10_240, "KiB"],
      [10 << 20, "MiB"],
      [2 ** 53, "GiB"],
    ];
    for (const [largest, label] of sizes) expect(columnScale("bytes", largest).label).toBe(label);
  });

  it("rounds once and never to zero", () => {
    const ms = columnScale("time", 10_000_000);
    expect(inScale(ms, 1_234_567_890)).toBe("1,234.568");
    expect(inScale(ms, 499)).toBe("<0.001");
    expect(inScale(ms, 500)).toBe("0.001");
    expect(inScale(ms, 0)).toBe("0");
    expect(inScale(ms, -499)).toBe("-<0.001");
    expect(inScale(ms, -1_500_000)).toBe("-1.500");
    expect(inScale(columnScale("bytes", 0), -1_024)).toBe("-1,024");
  });

  it("gives single values their unit", () => {
    expect([time(31_912_345), time(999), time(1_200_000_000), time(null)]).toEqual(["31.912 ms", "999 ns", "1.200 s", MISSING]);
    expect(bytes(-3 * 2 ** 20)).toBe("-3.00 MiB");
    expect([count(1_234_567), count(999), count(-1_024), count(null)]).toEqual(["1,234,567", "999", "-1,024", MISSING]);
    expect([rate(289_412_345_678), rate(4.8e12), clock(1.98e9), clock(345e6), flopRate(989e12)]).toEqual([
      "289.4 GB/s",
      "4.80 TB/s",
      "1.98 GHz",
      "345 MHz",
      "989.00 TFLOP/s",
    ]);
  });

  it("shows shares, means and plain numbers", () => {
    expect([0.1918, 0.0001, -0.0001, -0.1, 0, 1].map(percent)).toEqual(["19.2", "<0.1", ">-0.1", "-10.0", "0", "100.0"]);
    expect(percents(undefined)).toBe(MISSING);
    expect([28, 27.5, 0.04, 0, 1_234.96].map(mean)).toEqual(["28", "27.5", "<0.1", "0", "1,235"]);
    expect([0, 0.001, -0.001, 33.917, -1_234.5, 1e20].map(decimal)).toEqual(["0", "<0.01", "-<0.01", "33.92", "-1,234.50", "1.000e+20"]);
    expect([plural(1, "launch", "launches"), plural(8_212, "launch", "launches"), words("blocked_in_sync")]).toEqual([
      "1 launch",
      "8,212 launches",
      "blocked in sync",
    ]);
  });
});
