import { describe, expect, test } from "vitest";
import { columnsOf, extremes, peakOf, upperBound, valueAt } from "../../src/canvas/curve_points";
import { cellsOf, childrenOf, layoutTree, makeTree, pathTo, step } from "../../src/canvas/icicle_layout";
import type { Icicle } from "../../src/data";
import { makeIcicle, random } from "./synthetic";

const small: Icicle = {
  parent: [-1, 0, 1, 1, 0, 4],
  name: ["all", "step", "mm", "add", "other", "gemm"],
  kind: ["root", "range", "op", "op", "range", "kernel"],
  host_ns: [100, 60, 40, 10, 40, null],
  device_ns: [200, 50, 50, 0, 150, 150],
  calls: [1, 1, 1, 1, 1, 1],
};

describe("the icicle", () => {
  test("children stand side by side within their parent, as wide as their time", () => {
    const tree = makeTree(small);
    expect([...tree.last]).toEqual([6, 4, 3, 4, 6, 6]);
    expect([...tree.depth]).toEqual([0, 1, 2, 2, 1, 2]);
    const device = layoutTree(tree, "device");
    expect([...device.left]).toEqual([0, 0, 0, 0.25, 0.25, 0.25]);
    expect([...device.right]).toEqual([1, 0.25, 0.25, 0.25, 1, 1]);
    const host = layoutTree(tree, "host");
    expect([...host.right].map((edge) => Number(edge.toFixed(6)))).toEqual([1, 0.6, 0.4, 0.5, 1, 0.6]);
  });

  test("of any tree: no node leaves its parent, no two of a depth overlap", () => {
    for (let seed = 1; seed < 30; seed++) {
      const tree = makeTree(makeIcicle(random(seed)));
      for (const measure of ["host", "device"] as const) {
        const { left, right } = layoutTree(tree, measure);
        const edge = new Float64Array(20);
        for (let i = 0; i < tree.n; i++) {
          expect(right[i]).toBeGreaterThanOrEqual(left[i]!);
          const above = tree.parent[i]!;
          if (above >= 0) expect(left[i]! >= left[above]! - 1e-9 && right[i]! <= right[above]! + 1e-9).toBe(true);
          expect(left[i]!).toBeGreaterThanOrEqual(edge[tree.depth[i]!]! - 1e-9);
          edge[tree.depth[i]!] = right[i]!;
        }
      }
    }
  });

  test("cells are those that can be seen, and merged ones cover the rest", () => {
    for (let seed = 1; seed < 20; seed++) {
      const tree = makeTree(makeIcicle(random(seed)));
      const edges = layoutTree(tree, "device");
      const root = seed % 3;
      const cells = cellsOf(tree, edges, root, 500, 1);
      const scale = 500 / (edges.right[root]! - edges.left[root]!);
      const wide: number[] = [];
      for (let i = root; i < tree.last[root]!; i++) {
        const seen = pathTo(tree, i).every((node) => node < root || (edges.right[node]! - edges.left[node]!) * scale >= 1);
        if (seen) wide.push(i);
      }
      expect(cells.filter(({ x0, x1 }) => x1 - x0 >= 1).map(({ node }) => node)).toEqual(expect.arrayContaining(wide));
      cells.forEach(({ x0, x1 }) => expect(x0 >= -1e-6 && x1 <= 500 + 1e-6).toBe(true));
    }
  });

  test("what is no tree in preorder hangs where it can, and nothing loops", () => {
    const broken: Icicle = { ...small, parent: [-1, 5, 1, 99, -7, 2] };
    const tree = makeTree(broken);
    for (let i = 1; i < tree.n; i++) expect(tree.parent[i]!).toBeLessThan(i);
    expect(tree.last[0]).toBe(6);
    expect(makeTree({ ...small, name: [] }).n).toBe(0);
    expect(cellsOf(makeTree({ ...small, name: [] }), { left: new Float64Array(0), right: new Float64Array(0) }, 0, 100, 1)).toEqual([]);
  });

  test("arrows walk up, down to the widest, and aside", () => {
    const tree = makeTree(small);
    const edges = layoutTree(tree, "device");
    expect(step(tree, edges, 0, 0, "down")).toBe(4);
    expect(step(tree, edges, 0, 4, "left")).toBe(1);
    expect(step(tree, edges, 0, 1, "left")).toBe(1);
    expect(step(tree, edges, 0, 1, "right")).toBe(4);
    expect(step(tree, edges, 0, 5, "up")).toBe(4);
    expect(step(tree, edges, 0, 0, "up")).toBe(0);
    expect(step(tree, edges, 0, 5, "down")).toBe(5);
    expect(childrenOf(tree, edges, 1)).toEqual([2]);
    expect(pathTo(tree, 5)).toEqual([0, 4, 5]);
  });
});

describe("curves, against looking at each point", () => {
  const points = (next: () => number, n: number) => {
    let t = 0;
    return {
      t: Float64Array.from({ length: n }, () => (t += Math.floor(next() * 5))),
      v: Float64Array.from({ length: n }, () => Math.floor(next() * 100)),
    };
  };

  test("values, extremes and peaks", () => {
    const next = random(12);
    for (let round = 0; round < 300; round++) {
      const curve = points(next, 1 + Math.floor(next() * 50));
      const at = Math.floor(next() * 150) - 10;
      const before = [...curve.t].filter((t) => t <= at).length;
      expect(upperBound(curve.t, at)).toBe(before);
      expect(valueAt(curve, at)).toBe(before === 0 ? null : curve.v[before - 1]);
      const b = at + Math.floor(next() * 60);
      const shown = [...curve.v].filter((_, i) => curve.t[i]! > at && curve.t[i]! <= b);
      if (before > 0) shown.push(curve.v[before - 1]!);
      expect(extremes(curve, at, b)).toEqual(shown.length === 0 ? null : [Math.min(...shown), Math.max(...shown)]);
      expect(curve.v[peakOf(curve)]).toBe(Math.max(...curve.v));
    }
    expect(peakOf({ t: new Float64Array(0), v: new Float64Array(0) })).toBe(-1);
  });

  test("columns keep every peak of the view, in order, each column once", () => {
    const next = random(13);
    for (let round = 0; round < 300; round++) {
      const curve = points(next, Math.floor(next() * 200));
      const a = Math.floor(next() * 100);
      const b = a + 1 + Math.floor(next() * 400);
      const width = 1 + Math.floor(next() * 60);
      const columns = columnsOf(curve, a, b, width);
      const seen = extremes(curve, a, b);
      if (seen === null) expect(columns).toEqual([]);
      else {
        expect(Math.max(...columns.map(({ most }) => most))).toBe(seen[1]);
        expect(Math.min(...columns.map(({ least }) => least))).toBeLessThanOrEqual(seen[0]);
        expect(columns[columns.length - 1]!.last).toBe(valueAt(curve, b));
      }
      columns.forEach(({ x }, k) => expect(x < width && (k < 2 || x >= columns[k - 1]!.x)).toBe(true));
      expect(columns.length).toBeLessThanOrEqual(width + 2);
    }
  });
});
