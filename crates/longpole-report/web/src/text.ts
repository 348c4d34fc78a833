/**
 * The only way that names reach the page. Names are data from a file that anyone may have made: they are set as text, never as
 * markup, and what would be invisible or would reorder its surroundings (control characters, bidirectional marks, zero-width
 * characters, lone surrogates) is written out by its code point.
 */

// C0 and C1 controls, soft hyphen, Arabic letter mark, Mongolian separator, zero-width and directional marks, line and paragraph
// separators, embeddings and overrides, invisible operators and isolates, byte order mark, annotations, lone surrogates, tags.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;

/** A name as it may be shown: every character of it is visible and none moves another. */
export function visible(name: string): string {
  return name.replace(INVISIBLE, (c) => `\u27e8U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

/** A text node of a name. */
export function textNode(name: string): Text {
  return document.createTextNode(visible(name));
}

/** Puts a name into an element, in place of what it held. */
export function setText(element: Element, name: string): void {
  element.textContent = visible(name);
}

/** Shortens in the middle, where long kernel names differ least, to at most `most` characters. */
export function shorten(name: string, most: number): string {
  const characters = Array.from(name.length > 4 * most ? name.slice(0, 2 * most) + name.slice(-2 * most) : name);
  if (characters.length <= most) return characters.join("");
  const head = Math.ceil((most - 1) * 0.6);
  return `${characters.slice(0, head).join("")}\u2026${characters.slice(characters.length - (most - 1 - head)).join("")}`;
}

/** What a caller may put into {@link h}: texts are shown through {@link visible}. */
export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = { [name: string]: string | number | boolean | null | undefined | ((event: never) => void) };

const SVG = new Set(["svg", "g", "path", "rect", "circle", "line", "text", "title", "polyline", "defs", "pattern", "use", "symbol"]);

/** Appends children to an element. */
export function put(parent: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) put(parent, ...child);
    else parent.append(child instanceof Node ? child : textNode(String(child)));
  }
}

/**
 * Makes an element. An attribute that is a function is a listener of that event; `true` stands for an empty attribute; null,
 * undefined and false leave it out. Texts of attributes pass through {@link visible} as well. There is no way to give markup.
 */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** The same for SVG. */
export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes?: Attributes, ...children: Child[]): SVGElementTagNameMap[K] {
  if (!SVG.has(tag)) throw new Error(`no such figure: ${tag}`);
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

function fill(element: Element, attributes: Attributes | undefined, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (name.startsWith("on") || name === "style") throw new Error(`attribute ${name} is not allowed`);
    else element.setAttribute(name, value === true ? "" : visible(String(value)));
  }
  put(element, ...children);
}
