/** Where the icicle's nodes stand, which of them are drawn, and how keys walk over them. */

import type { Icicle } from "../data";

export type Measure = "host" | "device";

export interface Tree {
  n: number;
  parent: Int32Array;
  depth: Uint16Array;
  /** One past the last descendant, in preorder. */
  last: Uint32Array;
  /** Time as recorded, `null` as NaN. */
  host: Float64Array;
  device: Float64Array;
}

/** Nodes deeper than this are left out; no program nests so deep on purpose. */
const MOST_DEPTH = 1000;

/** Reads the tree; what is no preorder (a parent that does not come before its child and hold it) hangs under the root. */
export function makeTree(icicle: Icicle): Tree {
  const n = Math.min(icicle.parent.length, icicle.name.length, icicle.kind.length, icicle.host_ns.length, icicle.device_ns.length, icicle.calls.length);
  const parent = new Int32Array(n).fill(-1);
  const depth = new Uint16Array(n);
  const last = new Uint32Array(n);
  // The way from the root to the node before: a parent must be on it.
  const path: number[] = [];
  for (let i = 0; i < n; i++) {
    const wanted = icicle.parent[i]!;
    while (path.length > 1 && path[path.length - 1] !== wanted) path.pop();
    const above = path[path.length - 1];
    if (above !== undefined) {
      parent[i] = above;
      depth[i] = Math.min(MOST_DEPTH, depth[above]! + 1);
    }
    path.push(i);
  }
  for (let i = n - 1; i >= 0; i--) {
    last[i] = Math.max(last[i]!, i + 1);
    if (parent[i]! >= 0) last[parent[i]!] = Math.max(last[parent[i]!]!, last[i]!);
  }
  return { n, parent, depth, last, host: Float64Array.from(icicle.host_ns.slice(0, n), (ns) => ns ?? NaN), device: Float64Array.from(icicle.device_ns.slice(0, n)) };
}

/** Left and right edge of each node, as shares of the root's width. */
export interface Edges {
  left: Float64Array;
  right: Float64Array;
}

/**
 * Children stand side by side from their parent's left edge on, each as wide as its time; where they take more than their parent has
 * (calls that overlap), all of them shrink to fit. A node that has no time of its own is as wide as its children.
 */
export function layoutTree(tree: Tree, measure: Measure): Edges {
  const { n, parent } = tree;
  const own = measure === "host" ? tree.host : tree.device;
  const value = new Float64Array(n);
  const children = new Float64Array(n);
  for (let i = n - 1; i >= 0; i--) {
    value[i] = own[i]! > 0 ? own[i]! : 0;
    if (Number.isNaN(own[i]!)) value[i] = children[i]!;
    if (parent[i]! < 0) value[i] = Math.max(value[i]!, children[i]!);
    else children[parent[i]!]! += value[i]!;
  }
  const left = new Float64Array(n);
  const right = new Float64Array(n);
  const next = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const above = parent[i]!;
    if (above < 0) {
      right[i] = value[i]! > 0 ? 1 : 0;
    } else {
      const room = Math.max(value[above]!, children[above]!);
      const width = room > 0 ? (value[i]! / room) * (right[above]! - left[above]!) : 0;
      left[i] = next[above]!;
      right[i] = Math.min(right[above]!, left[i]! + width);
      next[above] = right[i]!;
    }
    next[i] = left[i]!;
  }
  return { left, right };
}

export interface Cell {
  node: number;
  x0: number;
  x1: number;
  depth: number;
  /** Whether it stands for several nodes that are narrower than `least` each. */
  merged: boolean;
}

/** Cells under `root`, over `width` pixels; what is narrower than `least` pixels is merged with its neighbours, and not gone into. */
export function cellsOf(tree: Tree, edges: Edges, root: number, width: number, least: number): Cell[] {
  const cells: Cell[] = [];
  const origin = edges.left[root] ?? 0;
  const scale = width / Math.max(Number.MIN_VALUE, (edges.right[root] ?? 0) - origin);
  if (!Number.isFinite(scale)) return cells;
  const open: (Cell | undefined)[] = [];
  for (let i = root; i < (tree.last[root] ?? 0); ) {
    const x0 = (edges.left[i]! - origin) * scale;
    const x1 = (edges.right[i]! - origin) * scale;
    const depth = tree.depth[i]! - tree.depth[root]!;
    if (x1 - x0 >= least) {
      cells.push({ node: i, x0, x1, depth, merged: false });
      open[depth] = undefined;
      i += 1;
      continue;
    }
    if (x1 > x0) {
      const before = open[depth];
      if (before !== undefined && x0 - before.x1 < 0.5 && before.x1 - before.x0 < 3) {
        before.x1 = Math.max(before.x1, x1);
        before.merged = true;
      } else cells.push((open[depth] = { node: i, x0, x1, depth, merged: false }));
    }
    i = tree.last[i]!;
  }
  return cells;
}

/** The path from the root to `node`, both included. */
export function pathTo(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0 && path.length <= MOST_DEPTH + 1; at = tree.parent[at]!) path.unshift(at);
  return path;
}

/** Children of `node` that have a width. */
export function childrenOf(tree: Tree, edges: Edges, node: number): number[] {
  const found: number[] = [];
  for (let i = node + 1; i < tree.last[node]!; i = tree.last[i]!) if (edges.right[i]! > edges.left[i]!) found.push(i);
  return found;
}

/** Where an arrow key leads from `node`: up to its parent (not above `root`), down to its widest child, aside to its siblings. */
export function step(tree: Tree, edges: Edges, root: number, node: number, key: "up" | "down" | "left" | "right"): number {
  if (key === "down") {
    const children = childrenOf(tree, edges, node);
    const wide = (i: number) => edges.right[i]! - edges.left[i]!;
    return children.length === 0 ? node : children.reduce((best, i) => (wide(i) > wide(best) ? i : best));
  }
  if (node === root) return node;
  const above = tree.parent[node]!;
  if (key === "up") return above < 0 ? node : above;
  const siblings = childrenOf(tree, edges, above);
  const at = siblings.indexOf(node);
  return siblings[at + (key === "left" ? -1 : 1)] ?? node;
}
