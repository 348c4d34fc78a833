/** Values of tables: how they are shown, put in order, looked for, and copied. */
import { visible } from "./text";
import { columnScale, count, decimal, inScale, mean, MISSING, percent, type Unit } from "./units";

export type Cell = string | number | null | undefined;

/** `name`: text that is shortened and can be shown in full. `prose`: sentences. Units: one scale for the whole column. */
export type Kind = "name" | "text" | "prose" | "count" | "mean" | "percent" | "decimal" | Unit;

/** A value as its column shows it. */
export function format(kind: Kind, value: Cell, largest: number): string {
  if (value === null || value === undefined) return MISSING;
  if (typeof value === "string") return value;
  switch (kind) {
    case "count":
      return count(value);
    case "mean":
      return mean(value);
    case "percent":
      return percent(value);
    case "decimal":
      return decimal(value);
    case "name":
    case "text":
    case "prose":
      return String(value);
    default:
      return inScale(columnScale(kind, largest), value);
  }
}

/** Rows in order of a column. What is missing comes last either way; equal rows keep their order. */
export function sorted<Row>(rows: Row[], value: (row: Row) => Cell, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  return rows
    .map((row, i) => ({ row, i, value: value(row) ?? null }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) return a.value === b.value ? a.i - b.i : a.value === null ? 1 : -1;
      const order =
        typeof a.value === "number" && typeof b.value === "number" ? a.value - b.value : compareText(String(a.value), String(b.value));
      return order === 0 ? a.i - b.i : sign * order;
    })
    .map(({ row }) => row);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a filter's text accepts: `/regex/` or `/regex/i`, or any text in either case. Null: the expression is not one. */
export function matcher(text: string): ((name: string) => boolean) | null {
  const parts = /^\/(.+)\/(i?)$/s.exec(text.trim());
  if (parts !== null) {
    try {
      const expression = new RegExp(parts[1] as string, parts[2]);
      return (name) => expression.test(name);
    } catch {
      return null;
    }
  }
  const wanted = text.trim().toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}

/** Whether numbers of a column stand at its right end. */
export function isNumber(kind: Kind): boolean {
  return kind !== "name" && kind !== "text" && kind !== "prose";
}

/** A cell for the clipboard: one line, no tabs, and nothing that a spreadsheet would run. */
export function plain(text: string): string {
  const line = visible(text.replace(/[\t\r\n]+/g, " "));
  return /^[=+@]|^-[^\d<]/.test(line) ? `'${line}` : line;
}
