/** Times in words, and the marks of a time axis. */

const UNITS: [unit: string, ns: number][] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["us", 1e3],
  ["ns", 1],
];

/** The largest unit of which `ns` holds one at least. */
function unitOf(ns: number): [string, number] {
  return UNITS.find(([, size]) => Math.abs(ns) >= size) ?? ["ns", 1];
}

/** `ns` with four digits or so: `1.234 ms`, `999 ns`, `12.35 s`. Units as in the program's own pages (`us` for microseconds). */
export function duration(ns: number): string {
  const [unit, size] = unitOf(ns);
  if (size === 1) return `${Math.round(ns)} ns`;
  const value = ns / size;
  const digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return `${value.toFixed(digits)} ${unit}`;
}

/** `ns` in full, to the nanosecond: `1.234 567 890 s` is written `1.234567890 s`. */
export function exact(ns: number): string {
  const [unit, size] = unitOf(ns);
  const digits = Math.round(Math.log10(size));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

/** A step of 1, 2 or 5 times a power of ten that is at least `least`. */
export function niceStep(least: number): number {
  if (!(least > 0) || !Number.isFinite(least)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= least * (1 - 1e-12)) return Math.max(1, factor * power);
  return Math.max(1, 10 * power);
}

export interface Ticks {
  step: number;
  /** Times of marks, from `origin` on in steps. */
  at: number[];
  /** What stands at a mark: its distance from the origin, in one unit for all marks. */
  label(t: number): string;
}

/** Marks for the view `[a, b]` over `width` pixels, at least `apart` pixels from each other. */
export function ticks(a: number, b: number, width: number, apart: number, origin: number): Ticks {
  const step = niceStep(((b - a) / Math.max(1, width)) * apart);
  const at: number[] = [];
  const first = Math.ceil((a - origin) / step);
  const last = Math.floor((b - origin) / step);
  for (let k = first; k <= last && at.length < 1000; k++) at.push(origin + k * step);
  // The unit fits the largest mark, the digits fit the step.
  const [unit, size] = unitOf(Math.max(Math.abs(a - origin), Math.abs(b - origin), step));
  const digits = Math.max(0, Math.ceil(Math.log10(size) - Math.log10(step) - 1e-9));
  return { step, at, label: (t) => `${((t - origin) / size).toFixed(digits)} ${unit}` };
}

/** Bytes in words: `1.25 GiB`. */
export function size(bytes: number): string {
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) {
    if (Math.abs(bytes) >= factor) return `${(bytes / factor).toFixed(Math.abs(bytes) >= 100 * factor ? 1 : 2)} ${unit}`;
  }
  return `${Math.round(bytes)} B`;
}

/** A share 0..1 in per cent: `12.3 %`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** A count with its noun: `1 event`, `12,345 events`. */
export function counted(n: number, noun: string): string {
  return `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** Digits in groups of three, the same in every locale. */
export function grouped(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}
