import { describe, expect, it } from "vitest";
import type { Roofline, Steps } from "../src/documents";
import { byLine } from "../src/views/ncu_kernel";
import { figureText } from "../src/views/ncu_compare";
import { points, shapes } from "../src/views/roofline";
import { byRole } from "../src/views/step_rows";
import { evidenceFigure } from "../src/views/suspects";
import { parts } from "../src/views/summary";

type Group = Steps["groups"][number];
type Row = Group["rows"][number];

describe("byRole", () => {
  const row = (role: string, ns: number, floor: number | null, kernel = "k"): Row =>
    ({
      part: "layer",
      layer_kind: 0,
      role,
      role_from: "operator",
      kernel,
      kernel_name: kernel,
      calls_per_step: 1,
      ns_per_step: ns,
      total_ns: 2 * ns,
      share_fraction: 0.1,
      floor_ns: floor,
      ceiling_ns: floor === null ? null : ns - floor,
    }) as Row;
  const group = (rows: Row[]): Group => ({ rows, layer_kinds: [{ kernels: 2, copies_and_fills: 0, count: 28 }] }) as unknown as Group;

  it("adds the kernels of a role up and names the longest", () => {
    const [first, second] = byRole(group([row("norm", 5, 1, "a"), row("norm", 7, 2, "b"), row("proj", 1, 1)]));
    expect(first).toMatchObject({ part: "layer x 28", role: "norm", kernel: "b", ns: 12, total: 24, floor: 3, ceiling: 9, calls: 2 });
    expect(second).toMatchObject({ role: "proj", ns: 1 });
  });

  it("has no floor where that of one kernel is not known", () => {
    expect(byRole(group([row("norm", 5, 1), row("norm", 7, null)]))[0]).toMatchObject({ floor: null, ceiling: 4 });
  });
});

describe("parts of the wall", () => {
  it("do not overlap and add up to it", () => {
    const list = parts(1_000, { gpu_busy_ns: 600, gpu_idle_ns: 300, kernel_busy_ns: 550, exposed_copy_ns: 50, exposed_comm_ns: 200 });
    expect(Object.fromEntries(list.map((part) => [part.label, part.value]))).toEqual({
      kernels: 350,
      "communication alone": 200,
      "copies and fills alone": 50,
      "other device work": 0,
      idle: 300,
      "outside of device work": 100,
    });
    expect(list.reduce((sum, part) => sum + part.value, 0)).toBe(1_000);
  });
});

describe("evidence", () => {
  it("takes the unit from the end of the key", () => {
    expect(evidenceFigure("starved_ns", 125_321_040)).toEqual({ label: "starved", value: "125.321 ms" });
    expect(evidenceFigure("starved_of_span_fraction", 0.5996)).toEqual({ label: "starved of span", value: "60.0 %" });
    expect(evidenceFigure("kernels", 22_536)).toEqual({ label: "kernels", value: "22,536" });
    expect(evidenceFigure("calls_per_step", 346.5)).toEqual({ label: "calls per step", value: "346.50" });
    expect(evidenceFigure("idle_ns", null)).toEqual({ label: "idle", value: "\u2013" });
    expect(evidenceFigure("inside", null)).toEqual({ label: "inside", value: "\u2013" });
  });
});

describe("shapes", () => {
  it("reads like the terminal", () => {
    expect(shapes("[[1, 1024], [1024, 1024]]")).toBe("1x1024, 1024x1024");
    expect(shapes("[[[0], [1, 8, 1024]], []]")).toBe("(0, 1x8x1024)");
    expect(shapes("[[], [], 1]")).toBe("[[], [], 1]");
    expect(shapes("not a list")).toBe("not a list");
    expect(shapes(null)).toBeNull();
  });
});

describe("points of the roofline", () => {
  it("are those whose work is known, most time first", () => {
    const row = (device_ns: number, flops: number | null): Roofline["rows"][number] =>
      ({ device_ns, flops_per_call: flops, bytes_per_call: 4, flops_per_s: 1e9 }) as Roofline["rows"][number];
    expect(points([row(1, 8), row(5, 4), row(9, null), row(9, 0)]).map((point) => [point.row.device_ns, point.intensity])).toEqual([
      [5, 1],
      [1, 2],
    ]);
  });
});

describe("figures of ncu", () => {
  it("have their unit", () => {
    expect([
      figureText(352_576, "ns"),
      figureText(99_635_968, "byte"),
      figureText(6.01, "%"),
      figureText(152, ""),
      figureText(0.154, ""),
      figureText(null, "ns"),
      figureText(2, "warp"),
    ]).toEqual(["352.6 us", "95.02 MiB", "6.0 %", "152", "0.15", "\u2013", "2.00 warp"]);
  });

  it("add up by line", () => {
    const at = (line: number | null, samples: number, reason: string): never =>
      ({ file: "a.cu", line, samples, share_fraction: samples / 10, stalls: [{ reason, samples }] }) as never;
    expect(
      byLine([at(3, 4, "wait"), at(3, 1, "barrier"), at(5, 6, "wait")]).map((line) => [line.line, line.samples, line.stalls[0]?.reason]),
    ).toEqual([
      [5, 6, "wait"],
      [3, 5, "wait"],
    ]);
  });
});
