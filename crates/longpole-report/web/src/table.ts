/**
 * A table that can be sorted by each column, filtered and copied. Rows beyond the first few are made when asked for, so that a list
 * of thousands costs nothing until someone wants it.
 */
import { type Cell, format, isNumber, type Kind, matcher, plain, sorted } from "./cells";
import { type Child, h, put, setText, shorten } from "./text";
import { columnScale, count, MISSING, plural, type Unit } from "./units";

export interface Column<Row> {
  key: string;
  label: string;
  kind: Kind;
  value: (row: Row) => Cell;
  /** What stands in the cell instead of the plain value. */
  show?: (row: Row) => Child;
  /** Draws the value (a share 0..1) as a bar as well. */
  bar?: boolean;
  /** What the column means, shown with the head. */
  title?: string;
  /** Columns of one such word share their unit, so that they can be compared by eye. */
  scale?: string;
  /** A sum below the rows. */
  total?: number | null;
}

export interface TableOptions<Row> {
  /** Names the table for those who do not see it, and its controls. */
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  /** `operator`, `operators`. */
  noun: [string, string];
  /** Rows shown at first. */
  first?: number;
  /** Where the order of rows says something: those of most weight are shown at first, in their order. */
  weight?: (row: Row) => number;
  /** The texts that the filter looks in. Without them, or with few rows, there is no filter. */
  filter?: (row: Row) => (string | null)[];
  /** `1,234 of 5,678 rows are in this page`, from the report's cuts. */
  cut?: string | null;
  /** Buttons of a row, e.g. to its moment. */
  action?: (row: Row) => Child;
  /** Indent of the first column, e.g. for nested ranges; holds only in the order that was given. */
  depth?: (row: Row) => number;
  rowClass?: (row: Row) => string | null;
  empty?: string;
}

const MORE = 200;
const LONG = 48;

/** A name that may be long: shortened, with a button that shows all of it, or the `whole` one that it is short for. */
export function nameCell(shown: string, most = LONG, whole = shown): Child {
  const short = shorten(shown, most);
  if (short === whole) return h("span", { class: "name" }, whole);
  const text = h("span", { class: "name" }, short);
  const button = h(
    "button",
    {
      class: "unfold",
      type: "button",
      "aria-expanded": "false",
      "aria-label": "whole name",
      title: whole,
      click: () => {
        const open = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(open));
        setText(text, open ? whole : short);
        text.classList.toggle("whole", open);
      },
    },
    "\u2026",
  );
  return [text, button];
}

/** A box that scrolls can be reached by keyboard; one that does not would only be one more stop on the way. */
function stopWhenScrolled(box: Element): void {
  scrolled ??= new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
      else target.removeAttribute("tabindex");
    }
  });
  scrolled.observe(box);
}
let scrolled: ResizeObserver | null = null;

export function table<Row>(options: TableOptions<Row>): HTMLElement {
  const { columns, rows, noun, caption } = options;
  if (rows.length === 0) return h("p", { class: "none" }, options.empty ?? `No ${noun[1]} were found.`);
  const first = options.first ?? 15;
  const largest = new Map<string, number>();
  for (const column of columns) {
    let most = 0;
    if (isNumber(column.kind)) {
      for (const row of rows) {
        const value = column.value(row);
        if (typeof value === "number") most = Math.max(most, Math.abs(value));
      }
      if (typeof column.total === "number") most = Math.max(most, Math.abs(column.total));
    }
    largest.set(column.key, most);
  }
  for (const column of columns) {
    if (column.scale === undefined) continue;
    const alike = columns.filter((other) => other.scale === column.scale).map((other) => largest.get(other.key) ?? 0);
    largest.set(column.key, Math.max(...alike));
  }
  const unit = (column: Column<Row>): string => {
    if (column.kind === "percent") return "%";
    const scaled = !["name", "text", "prose", "count", "mean", "decimal"].includes(column.kind);
    return scaled ? columnScale(column.kind as Unit, largest.get(column.key) ?? 0).label : "";
  };

  let by: { column: Column<Row>; descending: boolean } | null = null;
  let accept: ((row: Row) => boolean) | null = null;
  let shown = first;
  let current: Row[] = rows;

  const body = h("tbody");
  const status = h("p", { class: "table-status", role: "status" });
  const more = h("div", { class: "table-more" });

  /** Buttons of a row stand behind its name, where they hide nothing and are in sight however far the rest is scrolled. */
  const withAction = (list: HTMLElement[], action: () => HTMLElement): HTMLElement[] =>
    options.action === undefined ? list : [...list.slice(0, 1), action(), ...list.slice(1)];

  const cells = (row: Row): HTMLElement[] =>
    columns.map((column, i) => {
      const value = column.value(row);
      const text =
        column.show?.(row) ??
        (column.kind === "name" ? nameCell(String(value ?? MISSING)) : format(column.kind, value, largest.get(column.key) ?? 0));
      const classes = `${isNumber(column.kind) ? "number" : column.kind === "name" ? "name-cell" : column.kind === "prose" ? "prose" : "words"}${column.bar === true ? " with-bar" : ""}`;
      const cell = i === 0 ? h("th", { scope: "row", class: classes }) : h("td", { class: classes });
      if (i === 0 && options.depth !== undefined && by === null) cell.style.paddingLeft = `${0.5 + 1.1 * options.depth(row)}rem`;
      put(cell, text);
      if (column.bar === true && typeof value === "number") {
        const bar = h("span", { class: "share", "aria-hidden": "true" });
        bar.style.setProperty("--share", String(Math.max(0, Math.min(1, value))));
        cell.append(bar);
      }
      return cell;
    });

  const rowOf = (row: Row): HTMLTableRowElement =>
    h(
      "tr",
      { class: options.rowClass?.(row) },
      withAction(cells(row), () => h("td", { class: "action" }, options.action?.(row))),
    );

  const heaviest =
    options.weight === undefined || rows.length <= first
      ? null
      : new Set(
          [...rows]
            .sort((a, b) => (options.weight as (row: Row) => number)(b) - (options.weight as (row: Row) => number)(a))
            .slice(0, first),
        );
  const picked = heaviest === null ? null : rows.filter((row) => heaviest.has(row));
  /** The picked rows are shown until something else is asked for. */
  const picking = (): boolean => picked !== null && by === null && accept === null && shown === first;

  /** Adds rows up to `shown`, in pieces, so that a long list does not hold the page. */
  function extend(): void {
    const list = picking() ? (picked as Row[]) : current;
    const until = Math.min(shown, list.length, body.rows.length + 400);
    const piece = document.createDocumentFragment();
    for (let i = body.rows.length; i < until; i++) piece.append(rowOf(list[i] as Row));
    body.append(piece);
    if (until < Math.min(shown, list.length)) requestAnimationFrame(extend);
  }

  function tell(): void {
    const parts: string[] = [];
    const visibleRows = Math.min(shown, current.length);
    if (accept !== null) parts.push(`${count(current.length)} of ${plural(rows.length, noun[0], noun[1])} match`);
    if (visibleRows < current.length)
      parts.push(`${picking() ? "the largest " : ""}${count(visibleRows)} of ${plural(current.length, noun[0], noun[1])} shown`);
    else if (accept === null && rows.length > 5) parts.push(plural(rows.length, noun[0], noun[1]));
    if (typeof options.cut === "string") parts.push(options.cut);
    setText(status, parts.join(" \u00b7 "));
    more.replaceChildren();
    const rest = current.length - visibleRows;
    if (rest > 0) {
      const show = (n: number): void => {
        if (picking()) body.replaceChildren();
        shown += n;
        extend();
        tell();
      };
      if (rest > MORE) more.append(h("button", { type: "button", click: () => show(MORE) }, `${MORE} more`));
      more.append(h("button", { type: "button", click: () => show(rest) }, `all ${count(current.length)}`));
    }
    if (shown > first && current.length > first) {
      more.append(
        h(
          "button",
          {
            type: "button",
            click: () => {
              shown = first;
              update();
            },
          },
          "fewer",
        ),
      );
    }
  }

  function update(): void {
    const kept = accept === null ? rows : rows.filter(accept);
    current = by === null ? kept : sorted(kept, by.column.value, by.descending);
    body.replaceChildren();
    extend();
    tell();
  }

  const heads = columns.map((column) => {
    const head = h("th", { scope: "col", class: isNumber(column.kind) ? "number" : "words", "aria-sort": "none", title: column.title });
    const suffix = unit(column);
    head.append(
      h(
        "button",
        {
          type: "button",
          class: "sort",
          click: () => {
            const again = by?.column === column;
            // Numbers are wanted large first, texts by the alphabet; the third press gives the first order back.
            const start = isNumber(column.kind);
            if (!again) by = { column, descending: start };
            else if (by?.descending === start) by = { column, descending: !start };
            else by = null;
            for (const other of heads) other.setAttribute("aria-sort", "none");
            if (by !== null) head.setAttribute("aria-sort", by.descending ? "descending" : "ascending");
            update();
          },
        },
        column.label,
        suffix === "" ? null : h("span", { class: "unit" }, ` ${suffix}`),
      ),
    );
    return head;
  });

  const totals = columns.some((column) => column.total !== undefined)
    ? h(
        "tfoot",
        {},
        h(
          "tr",
          {},
          withAction(
            columns.map((column, i) => {
              const text = column.total === undefined ? "" : format(column.kind, column.total, largest.get(column.key) ?? 0);
              return i === 0
                ? h("th", { scope: "row" }, `total of ${plural(rows.length, noun[0], noun[1])}`)
                : h("td", { class: "number" }, text);
            }),
            () => h("td"),
          ),
        ),
      )
    : null;

  const controls = h("div", { class: "table-controls" });
  if (options.filter !== undefined && rows.length > 8) {
    const look = options.filter;
    const input = h("input", {
      type: "search",
      placeholder: "filter: text or /regex/",
      "aria-label": `filter ${noun[1]}: text or /regular expression/`,
      spellcheck: "false",
      autocomplete: "off",
      input: () => {
        const test = input.value.trim() === "" ? null : matcher(input.value);
        const wrong = input.value.trim() !== "" && test === null;
        input.setAttribute("aria-invalid", String(wrong));
        if (wrong) {
          setText(status, "this is no regular expression");
          return;
        }
        accept = test === null ? null : (row) => look(row).some((text) => text !== null && test(text));
        shown = first;
        update();
      },
    });
    controls.append(input);
  }
  const copy = h(
    "button",
    {
      type: "button",
      class: "copy",
      title: "copies the rows of this order and filter, tab-separated",
      click: () => {
        const lines = [columns.map((column) => `${column.label}${unit(column) === "" ? "" : ` (${unit(column)})`}`)];
        for (const row of current)
          lines.push(columns.map((column) => plain(format(column.kind, column.value(row), largest.get(column.key) ?? 0))));
        void copyText(lines.map((line) => line.join("\t")).join("\n"), status, `${plural(current.length, noun[0], noun[1])} copied`);
      },
    },
    "copy",
  );
  controls.append(copy, status);

  update();
  const box = h(
    "div",
    { class: "table-box", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          withAction(heads, () => h("th", { scope: "col" }, h("span", { class: "hidden" }, "go to"))),
        ),
      ),
      body,
      totals,
    ),
  );
  stopWhenScrolled(box);
  const whole = h("div", { class: "table" }, controls, box, more);
  // Paper cannot be unfolded: a sensible length of each table goes onto it, and the status says of how many.
  let onScreen = shown;
  addEventListener("beforeprint", () => {
    onScreen = shown;
    if (picking()) body.replaceChildren();
    shown = Math.max(shown, 60);
    extend();
    tell();
  });
  addEventListener("afterprint", () => {
    shown = onScreen;
    update();
  });
  return whole;
}

async function copyText(text: string, status: HTMLElement, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    setText(status, done);
  } catch {
    // Pages from a file have no clipboard in some browsers; the old way works from a press of a button.
    const area = h("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const worked = document.execCommand("copy");
    area.remove();
    setText(status, worked ? done : "this browser does not let the page copy");
  }
}
