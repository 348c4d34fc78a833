/**
 * Frame times of the timeline in headless Chromium without a GPU.
 *
 *     node test/canvas/frames/run.mjs [PAGE.html] [kernels=20000&threads=40...]
 *
 * With a page, that page; without, a made run. The script drags and zooms with real pointer events, one a frame, at five zooms from
 * the whole window to single kernels, and takes the time from frame to frame as requestAnimationFrame tells it, and the time that
 * the page's own code takes of each. Prints the median, the 95th percentile and the largest of both, and the page's CPU time a frame,
 * which says the same on a busy machine.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { build } from "vite";

const page_file = process.argv.slice(2).find((argument) => argument.endsWith(".html"));
const wish = process.argv.slice(2).find((argument) => argument.includes("=")) ?? "";
const scratch = mkdtempSync(join(tmpdir(), "frames-"));

async function made() {
  await build({
    configFile: false,
    logLevel: "error",
    publicDir: false,
    build: {
      outDir: scratch,
      emptyOutDir: false,
      target: "es2022",
      lib: { entry: fileURLToPath(new URL("page.ts", import.meta.url)), formats: ["iife"], name: "frames", fileName: () => "page.js", cssFileName: "page" },
    },
  });
  const file = join(scratch, "page.html");
  writeFileSync(file, '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><body><script src="page.js"></script>');
  return file;
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
const summary = (values) => {
  const sorted = [...values].sort((x, y) => x - y);
  return ["p50", 0.5, "p95", 0.95, "max", 1].reduce((text, one, i, all) => (i % 2 === 0 ? `${text} ${one} ${quantile(sorted, all[i + 1]).toFixed(1).padStart(6)}` : text), "");
};

const file = page_file ?? (await made());
const browser = await chromium.launch({
  executablePath: ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path)),
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.on("pageerror", (error) => console.error("page error:", error.message));
  await page.goto(`${pathToFileURL(file)}${wish === "" ? "" : `#${wish}`}`);
  const canvas = page.locator(".lp-timeline .lp-scroller canvas");
  await canvas.waitFor({ timeout: 120_000 });
  await canvas.scrollIntoViewIfNeeded();
  await page.waitForTimeout(500);
  const facts = await page.evaluate(() => ({ ...document.body.dataset }));
  console.log(JSON.stringify(facts));
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const of = (name) => 1000 * (metrics.find((metric) => metric.name === name)?.value ?? NaN);
    return { script: of("ScriptDuration"), task: of("TaskDuration") };
  };
  await page.exposeFunction("spent", spent);
  const results = await page.evaluate(async () => {
    const canvas = document.querySelector(".lp-timeline .lp-scroller canvas");
    const root = document.querySelector(".lp-timeline");
    const box = canvas.getBoundingClientRect();
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, pointerType: "mouse", button: type === "pointermove" ? -1 : 0, buttons: 1, clientX: x, clientY: y }));
    canvas.setPointerCapture = () => {};
    const wheel = (by) => canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ctrlKey: true, deltaY: by, clientX: box.left + box.width * 0.6, clientY: box.top + 100 }));
    // The page's own callbacks run within one frame between these two marks: ours is asked for before and answered before theirs.
    const run = async (frames, act) => {
      const between = [];
      const work = [];
      const before = await globalThis.spent();
      let last = await frame();
      for (let k = 0; k < frames; k++) {
        act(k);
        const began = performance.now();
        // A task after the frame's callbacks: the frame's script is over by then.
        const channel = new MessageChannel();
        const over = new Promise((done) => (channel.port1.onmessage = () => done(performance.now())));
        const now = await new Promise((done) => requestAnimationFrame((t) => { done(t); }));
        channel.port2.postMessage(0);
        await over;
        between.push(now - last);
        work.push(performance.now() - Math.max(began, now));
        last = now;
      }
      const after = await globalThis.spent();
      return { between, work, script: (after.script - before.script) / frames, task: (after.task - before.task) / frames };
    };
    const results = [];
    const x = box.left + box.width * 0.6;
    for (let zoom = 0; zoom < 5; zoom++) {
      const span = () => Number(root.dataset.viewEnd) - Number(root.dataset.viewStart);
      pointer("pointerdown", x, box.top + 150);
      pointer("pointermove", x + 10, box.top + 150);
      const pan = await run(90, (k) => pointer("pointermove", x + 200 * Math.sin(k / 12), box.top + 150));
      pointer("pointerup", x, box.top + 150);
      results.push({ name: "pan", span: span(), ...pan });
      const whole = span();
      const zoomed = await run(60, () => wheel(-12));
      results.push({ name: "zoom", span: whole, ...zoomed });
    }
    return results;
  });
  let slow = 0;
  for (const { name, span, between, work, script, task } of results) {
    const late = between.filter((ms) => ms > 1000 / 30 + 1).length;
    slow += late;
    console.log(`${name.padEnd(5)} view ${(span / 1e6).toPrecision(4).padStart(10)} ms   frame to frame ms${summary(between)}   page's work ms${summary(work)}   CPU ms a frame: script ${script.toFixed(1)}, all of the page's thread ${task.toFixed(1)}   slower than 30 a second: ${late} of ${between.length}`);
  }
  console.log(`${slow} frames slower than 30 a second`);
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
