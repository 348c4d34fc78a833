/** Light or dark: as the reader's system asks, until the button says otherwise. */

const dark = (): MediaQueryList => matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];
let chosen: "light" | "dark" | null = null;

export function theme(): "light" | "dark" {
  return chosen ?? (dark().matches ? "dark" : "light");
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme();
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  apply();
  dark().addEventListener("change", apply);
  // Paper is white, whatever the screen is.
  addEventListener("beforeprint", () => {
    document.documentElement.dataset["theme"] = "light";
    for (const listener of listeners) listener();
  });
  addEventListener("afterprint", apply);
}

export function toggleTheme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

/** Called after each change, for what is drawn and not styled. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}
