/** Pages as the program writes them, and a browser that complains of everything. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { deflateSync, inflateSync } from "node:zlib";
import { type Browser, chromium, type Page } from "playwright-core";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const CORPUS = join(ROOT, "corpus");
/** Where pictures go, to be looked at by people. Without it none are made: they take longer than all tests. */
const OUT = process.env["LONGPOLE_E2E_OUT"];

/** The program, e.g. target/debug/longpole. */
function binary(): string {
  const path = process.env["LONGPOLE"];
  if (path === undefined || !existsSync(path)) throw new Error("LONGPOLE must name the longpole program");
  return path;
}

/** Files of the corpus that `longpole report` takes: not the tables that other tools made of them. */
export function corpusFiles(): string[] {
  const files: string[] = [];
  for (const [folder, taken] of [
    ["kineto", /(?<!keyavg)\.json\.gz$/],
    ["other", /\.(json|json\.gz|hatchet)$/],
    ["recording", /\.longpole$/],
    ["ncu", /\.ncu-repz?$/],
  ] as const) {
    const found = readdirSync(join(CORPUS, folder)).filter((name) => taken.test(name));
    if (found.length === 0) throw new Error(`no traces in corpus/${folder}`);
    files.push(...found.sort().map((name) => join(folder, name)));
  }
  return files;
}

const folder = mkdtempSync(join(tmpdir(), "longpole-pages-"));
const made = new Map<string, string>();

/** The page of a trace, or of one compared with another; made once. */
export function pageOf(trace: string, before?: string): string {
  const key = `${trace} ${before ?? ""}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  const at = (path: string): string => (path.startsWith("/") ? path : join(CORPUS, path));
  const out = join(folder, `${made.size}.html`);
  execFileSync(binary(), ["report", at(trace), ...(before === undefined ? [] : [at(before)]), "-o", out, "--quiet"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  if (process.env["LONGPOLE_E2E_REEMBED"] === "1") reembed(out);
  made.set(key, out);
  return out;
}

/** For work on the page: puts the assets as they are built now into a page of an older program. */
function reembed(path: string): void {
  const asset = (name: string): string => readFileSync(join(ROOT, "crates/longpole-report/assets", name), "utf8");
  const page = readFileSync(path, "utf8");
  const script = page.lastIndexOf("<script>");
  const style = page.indexOf("<style>");
  writeFileSync(
    path,
    page
      .slice(0, style)
      .replace(/(?<=script-src )'sha256-[^']*'/, () => `'sha256-${asset("report.js.sha256").trim()}'`)
      .replace(/(?<=style-src )'sha256-[^']*'/, () => `'sha256-${asset("report.css.sha256").trim()}'`) +
      `<style>${asset("report.css")}` +
      page.slice(page.indexOf("</style>"), script) +
      `<script>${asset("report.js")}` +
      page.slice(page.indexOf("</script>", script)),
  );
}

/** What the page of `trace` holds. */
export function reportOf(trace: string): Record<string, unknown> {
  const text = /<script type="text\/plain" id="longpole-report">([^<]*)/.exec(readFileSync(pageOf(trace), "utf8"))?.[1] ?? "";
  return JSON.parse(inflateSync(Buffer.from(text, "base64")).toString("utf8")) as Record<string, unknown>;
}

/** The page of `trace` with another report in it; a text is put in as it stands. */
export function withReport(trace: string, name: string, report: object | string): string {
  const page = readFileSync(pageOf(trace), "utf8");
  const text = typeof report === "string" ? report : deflateSync(JSON.stringify(report)).toString("base64");
  return scratch(
    name,
    page.replace(/(<script type="text\/plain" id="longpole-report">)[^<]*/, (_, open: string) => open + text),
  );
}

/** A file for a test, beside the pages. */
export function scratch(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

export async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["LONGPOLE_CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

export interface Opened {
  page: Page;
  /** Errors of the console, of scripts, and requests for anything but the file. */
  complaints: string[];
  close(): Promise<void>;
}

export interface Look {
  width?: number;
  height?: number;
  dark?: boolean;
}

export async function open(browser: Browser, path: string, look: Look = {}): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1300, height: look.height ?? 900 },
    colorScheme: look.dark === true ? "dark" : "light",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  const url = pathToFileURL(path).href;
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== url) complaints.push(`request: ${request.url().slice(0, 200)}`);
  });
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  await page.waitForSelector("main h2, .broken", { timeout: 30_000 });
  return { page, complaints, close: () => context.close() };
}

export async function picture(page: Page, name: string): Promise<void> {
  if (OUT === undefined || OUT === "") return;
  mkdirSync(OUT, { recursive: true });
  await page.screenshot({ path: join(OUT, `${name}.png`), fullPage: true });
}
