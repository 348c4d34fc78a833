/** The canvas views in a browser, on a made run: pointers, wheel, keys, search, links, themes. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const CHROMIUM = [process.env["CHROMIUM"] ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path !== "" && existsSync(path));
const SIZE = "kernels=1000&threads=2&streams=2&devices=2&window_ns=100000000&kept=0.5";

if (CHROMIUM === undefined) console.warn("skipped: no Chromium here; set CHROMIUM to its path");

describe.skipIf(CHROMIUM === undefined)("canvas views", () => {
  const scratch = mkdtempSync(join(tmpdir(), "canvas-"));
  let browser: Browser;

  beforeAll(async () => {
    await build({
      configFile: false,
      logLevel: "error",
      publicDir: false,
      build: {
        outDir: scratch,
        emptyOutDir: false,
        target: "es2022",
        lib: { entry: fileURLToPath(new URL("../test/canvas/frames/page.ts", import.meta.url)), formats: ["iife"], name: "made", fileName: () => "page.js", cssFileName: "page" },
      },
    });
    writeFileSync(join(scratch, "page.html"), '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="stylesheet" href="page.css"><body><script src="page.js"></script>');
    browser = await chromium.launch({
      executablePath: CHROMIUM!,
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  async function open(extra = "", options: object = {}): Promise<{ page: Page; errors: string[] }> {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce", ...options });
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(`${pathToFileURL(join(scratch, "page.html"))}#${extra}${SIZE}`);
    await page.locator(".lp-timeline").waitFor();
    return { page, errors };
  }

  const lanes = (page: Page) => page.locator(".lp-timeline .lp-scroller canvas");
  const state = (page: Page) =>
    page.locator(".lp-timeline").evaluate((root) => {
      const { selectedName, viewStart, viewEnd } = (root as HTMLElement).dataset;
      return { selected: selectedName ?? "", a: Number(viewStart), b: Number(viewEnd) };
    });
  const settle = (page: Page) => page.evaluate(() => new Promise<void>((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

  test("keys choose, zoom and follow; the live region tells", async () => {
    const { page, errors } = await open();
    await lanes(page).focus();
    await page.keyboard.press("n");
    await page.keyboard.press("Enter");
    const chosen = await state(page);
    expect(chosen.selected).toContain("_kernel_");
    expect(chosen.b - chosen.a).toBeLessThan(1e6);
    expect(await page.locator(".lp-timeline .lp-live").textContent()).toContain("_kernel_");
    await page.keyboard.press("l");
    expect((await state(page)).selected).toMatch(/^cu/);
    await page.locator(".lp-jump").first().press("Enter");
    expect((await state(page)).selected).toContain("_kernel_");
    // The button went with its panel, the focus did not.
    expect(await lanes(page).evaluate((canvas) => document.activeElement === canvas)).toBe(true);
    await page.keyboard.press("Home");
    expect(await state(page)).toMatchObject({ a: 0, b: 1e8 });
    await page.keyboard.press("?");
    expect(await page.locator("dialog.lp-keys").isVisible()).toBe(true);
    await page.keyboard.press("Escape");
    expect(await page.locator("dialog.lp-keys").isVisible()).toBe(false);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("a wheel scrolls the page unless Ctrl zooms or Shift pans; a drag pans; Shift and drag measure", async () => {
    const { page, errors } = await open();
    const box = (await lanes(page).boundingBox())!;
    await page.mouse.move(box.x + 600, box.y + 100);
    await page.mouse.wheel(0, 2000);
    await page.waitForFunction(() => scrollY > 0 || document.querySelector(".lp-timeline .lp-scroller")!.scrollTop > 0);
    expect(await state(page)).toMatchObject({ a: 0, b: 1e8 });
    await page.evaluate(() => scrollTo(0, 0));
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -600);
    await page.keyboard.up("Control");
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>(".lp-timeline")!.dataset["viewEnd"]) < 1e8);
    const zoomed = await state(page);
    await settle(page);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 100, { steps: 3 });
    await page.mouse.up();
    const panned = await state(page);
    expect(panned.a).toBeGreaterThan(zoomed.a);
    expect(panned.b - panned.a).toBeCloseTo(zoomed.b - zoomed.a, -2);
    await settle(page);
    await page.keyboard.down("Shift");
    await page.mouse.down();
    await page.mouse.move(box.x + 700, box.y + 100, { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    const length = ((panned.b - panned.a) * 200) / (box.width - 184 - 8);
    const told = (await page.locator('.lp-panel[aria-label="Chosen range of time"] h3').textContent())!;
    expect(Math.abs(Number(/([\d.]+) (ms|us)/.exec(told)![1]) * (told.includes("ms") ? 1e6 : 1e3) - length)).toBeLessThan(length * 0.02);
    expect(await page.locator(".lp-panel tbody tr").count()).toBeGreaterThan(3);
    await page.locator(".lp-panel button", { hasText: "zoom to it" }).click();
    const ranged = await state(page);
    expect(Math.abs(ranged.b - ranged.a - length)).toBeLessThan(length * 0.02);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("a click chooses what is drawn there, a double click zooms to it, a heading folds its group", async () => {
    const { page, errors } = await open();
    await lanes(page).focus();
    await page.keyboard.press("n");
    await page.keyboard.press("Enter");
    const wanted = await state(page);
    await page.keyboard.press("Escape");
    expect((await state(page)).selected).toBe("");
    const box = (await lanes(page).boundingBox())!;
    await settle(page);
    // The event fills the middle half of the view; its lane is found by its bar of the chosen lane.
    const y = await lanes(page).evaluate((canvas: HTMLCanvasElement) => {
      const ctx = canvas.getContext("2d")!;
      const at = (row: number) => ctx.getImageData(100, row, 1, 1).data.join();
      const chosen = getComputedStyle(document.documentElement).getPropertyValue("--accent-ground").trim();
      const [r, g, b] = [1, 3, 5].map((from) => Number.parseInt(chosen.slice(from, from + 2), 16));
      for (let row = 0; row < canvas.height; row++) if (at(row) === `${r},${g},${b},255` && at(row + 3) === at(row)) return row + 6;
      return -1;
    });
    expect(y).toBeGreaterThan(0);
    await page.mouse.click(box.x + 184 + (box.width - 192) / 2, box.y + y);
    expect((await state(page)).selected).toBe(wanted.selected);
    await page.mouse.dblclick(box.x + 184 + (box.width - 192) / 2, box.y + y);
    await settle(page);
    expect(await state(page)).toEqual(wanted);
    await page.locator(".lp-timeline button", { hasText: "+" }).click();
    await settle(page);
    await page.mouse.dblclick(box.x + 184 + (box.width - 192) / 2, box.y + y);
    expect(await state(page)).toEqual(wanted);
    await page.locator(".lp-timeline button", { hasText: "whole window" }).click();
    await settle(page);
    const height = (await page.locator(".lp-scroller > div").boundingBox())!.height;
    await page.mouse.click(box.x + 60, box.y + 10);
    await settle(page);
    expect((await page.locator(".lp-scroller > div").boundingBox())!.height).toBeLessThan(height);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the search counts and goes from one to the next", async () => {
    const { page, errors } = await open();
    await page.getByLabel("Find events by name").fill("attention_kernel_3");
    expect(await page.locator(".lp-timeline .lp-count").textContent()).toMatch(/^[\d,]+ events$/);
    await page.keyboard.press("Enter");
    const first = await state(page);
    expect(first.selected).toContain("attention_kernel_3");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Shift+Enter");
    expect(await state(page)).toMatchObject({ selected: first.selected });
    expect(errors).toEqual([]);
    await page.close();
  });

  test("curves stand under the same times and can zoom them; peaks can be shown", async () => {
    const { page, errors } = await open();
    await page.locator(".lp-timeline button", { hasText: "+" }).click();
    await settle(page);
    const timeline = await state(page);
    const curves = () => page.locator(".lp-curves").evaluate((root) => [Number((root as HTMLElement).dataset["viewStart"]), Number((root as HTMLElement).dataset["viewEnd"])]);
    expect(await curves()).toEqual([timeline.a, timeline.b]);
    await page.locator(".lp-curves canvas").focus();
    await page.keyboard.press("+");
    await settle(page);
    const closer = await state(page);
    expect(closer.b - closer.a).toBeLessThan(timeline.b - timeline.a);
    expect(await curves()).toEqual([closer.a, closer.b]);
    await page.keyboard.press("ArrowRight");
    expect(await page.locator(".lp-curves .lp-live").textContent()).toMatch(/queue depth [\d,]+/);
    await page.locator(".lp-curves button").last().click();
    expect(await page.locator(".lp-curves .lp-readout").textContent()).toMatch(/memory/);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("the icicle: keys walk, Enter zooms, the path leads back", async () => {
    const { page, errors } = await open();
    const name = () => page.locator(".lp-icicle").evaluate((root) => (root as HTMLElement).dataset["selectedName"]);
    await page.locator(".lp-icicle canvas").focus();
    await page.keyboard.press("ArrowDown");
    expect(await name()).toMatch(/^range/);
    await page.keyboard.press("Enter");
    expect(await page.locator(".lp-crumbs li").count()).toBe(2);
    expect(await page.locator(".lp-icicle .lp-live").textContent()).toContain("of all device time");
    await page.locator(".lp-crumbs button").first().click();
    expect(await name()).toMatch(/^root/);
    await page.locator(".lp-icicle button", { hasText: "host time" }).click();
    expect(await page.locator(".lp-icicle .lp-readout").textContent()).toContain("of all host time");
    expect(errors).toEqual([]);
    await page.close();
  });

  test("fingers: two zoom, one sideways pans", async () => {
    const { page, errors } = await open("", { hasTouch: true, viewport: { width: 400, height: 800 } });
    const session = await page.context().newCDPSession(page);
    const box = (await lanes(page).boundingBox())!;
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...xs: number[]) =>
      session.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x: box.x + x, y: box.y + 60, id })) });
    await touch("touchStart", 180, 240);
    await touch("touchMove", 160, 260);
    await touch("touchMove", 120, 300);
    await touch("touchEnd");
    const pinched = await state(page);
    expect(pinched.b - pinched.a).toBeLessThan(5e7);
    await touch("touchStart", 200);
    for (const x of [190, 170, 130]) await touch("touchMove", x);
    await touch("touchEnd");
    expect((await state(page)).a).toBeGreaterThan(pinched.a);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("damage that shows late is said, once", async () => {
    const { page } = await open("kept=1&damaged=1&");
    await page.locator(".lp-timeline .lp-broken").waitFor();
    expect(await page.locator(".lp-broken").count()).toBe(1);
    await page.close();
  });

  test("nothing is wider than a narrow page", async () => {
    const { page } = await open("", { viewport: { width: 400, height: 800 } });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
    await page.close();
  });
});
