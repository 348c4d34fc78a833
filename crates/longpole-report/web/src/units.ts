/**
 * Numbers for people, as the commands print them: one unit a column, thousands separators, no nonzero value shown as zero, and `–`
 * for what is not recorded.
 */

export const MISSING = "\u2013";

/** A unit, and how many decimals it is shown with. */
export interface Scale {
  divisor: number;
  decimals: number;
  label: string;
}

const scales = (...rows: [number, number, string][]): Scale[] => rows.map(([divisor, decimals, label]) => ({ divisor, decimals, label }));

const TIME = scales([1, 0, "ns"], [1e3, 1, "us"], [1e6, 3, "ms"], [1e9, 3, "s"]);
const BYTES = scales([1, 0, "B"], [2 ** 10, 1, "KiB"], [2 ** 20, 2, "MiB"], [2 ** 30, 2, "GiB"]);
const RATE = scales([1, 0, "B/s"], [1e3, 1, "kB/s"], [1e6, 1, "MB/s"], [1e9, 1, "GB/s"], [1e12, 2, "TB/s"]);
const CLOCK = scales([1, 0, "Hz"], [1e3, 1, "kHz"], [1e6, 0, "MHz"], [1e9, 2, "GHz"]);
const FLOPS = scales([1, 0, "FLOP"], [1e3, 2, "kFLOP"], [1e6, 2, "MFLOP"], [1e9, 2, "GFLOP"], [1e12, 2, "TFLOP"]);
const FLOP_RATE = FLOPS.map((scale) => ({ ...scale, label: `${scale.label}/s` }));

export type Unit = "time" | "bytes" | "rate" | "flops" | "flop_rate" | "clock";
const BY_UNIT: Record<Unit, Scale[]> = { time: TIME, bytes: BYTES, rate: RATE, flops: FLOPS, flop_rate: FLOP_RATE, clock: CLOCK };

/** The largest unit of which `largest` holds at least `atLeast`. */
export function scaleFor(unit: Unit, largest: number, atLeast: number): Scale {
  const list = BY_UNIT[unit];
  return list.findLast((scale) => Math.abs(largest) >= scale.divisor * atLeast) ?? (list[0] as Scale);
}

/** The unit of a column: taken from ten of it upwards, so that the small rows of a column keep digits. */
export function columnScale(unit: Unit, largest: number): Scale {
  return scaleFor(unit, largest, 10);
}

function group(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number with so many decimals, at least the smallest that these can show unless it is nothing. */
function fixed(value: number, decimals: number): string {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  const smallest = 10 ** -decimals;
  const below = magnitude < smallest / 2;
  const [whole = "0", rest] = (below ? smallest : magnitude).toFixed(decimals).split(".");
  return `${value < 0 ? "-" : ""}${below ? "<" : ""}${group(whole)}${rest === undefined ? "" : `.${rest}`}`;
}

/** A value in a column's unit, without its name. */
export function inScale(scale: Scale, value: number): string {
  return fixed(value / scale.divisor, scale.decimals);
}

function alone(unit: Unit, value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  const scale = scaleFor(unit, value, 1);
  return `${inScale(scale, value)} ${scale.label}`;
}

/** One time with its own unit: `31.912 ms`. */
export const time = (ns: number | null | undefined): string => alone("time", ns);
export const bytes = (value: number | null | undefined): string => alone("bytes", value);
export const rate = (value: number | null | undefined): string => alone("rate", value);
export const clock = (value: number | null | undefined): string => alone("clock", value);
export const flopRate = (value: number | null | undefined): string => alone("flop_rate", value);
export const flops = (value: number | null | undefined): string => alone("flops", value);

/** A count: `22,536`. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? MISSING : `${value < 0 ? "-" : ""}${group(String(Math.round(Math.abs(value))))}`;
}

/** A mean of counts: whole, or with one decimal. */
export function mean(value: number | null | undefined): string {
  if (value === null || value === undefined) return MISSING;
  const tenths = Math.round(value * 10);
  if (value > 0 && tenths === 0) return "<0.1";
  return tenths % 10 === 0 ? count(tenths / 10) : fixed(value, 1);
}

/** A share 0..1 as percent without the sign: `19.2`. */
export function percent(fraction: number | null | undefined): string {
  if (fraction === null || fraction === undefined) return MISSING;
  const value = fraction * 100;
  if (value === 0) return "0";
  if (value > 0 && value < 0.05) return "<0.1";
  if (value < 0 && value > -0.05) return ">-0.1";
  return fixed(value, 1);
}

/** The same with its sign. */
export function percents(fraction: number | null | undefined): string {
  const text = percent(fraction);
  return text === MISSING ? text : `${text} %`;
}

/** A plain number with two decimals: `1,234.50`. */
export function decimal(value: number | null | undefined): string {
  if (value === null || value === undefined) return MISSING;
  if (Math.abs(value) >= 1e15) return value.toExponential(3);
  return fixed(value, 2);
}

/** `1 launch`, `8,212 launches`. */
export function plural(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A code as words: `blocked_in_sync` is `blocked in sync`. */
export function words(code: string): string {
  return code.replaceAll("_", " ");
}
