import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostileTrace, NAMES } from "./hostile";
import { corpusFiles, launch, open, type Opened, pageOf, picture, reportOf, scratch, withReport } from "./pages";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
});

/** Opens, runs, and holds the page against what every page must keep to. */
async function within(path: string, look: Parameters<typeof open>[2], run: (page: Page, opened: Opened) => Promise<void>): Promise<void> {
  const opened = await open(browser, path, look);
  try {
    await run(opened.page, opened);
    expect(opened.complaints).toEqual([]);
    expect(await opened.page.locator(".broken, .lp-broken").allTextContents()).toEqual([]);
  } finally {
    await opened.close();
  }
}

const sidewaysScroll = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Sections with nothing but their title. */
const emptySections = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll("main > section")]
      .filter(
        (section) =>
          section.querySelector("canvas, svg, table") === null &&
          (section.textContent ?? "").trim().length <= (section.querySelector("h2")?.textContent ?? "").length + 10,
      )
      .map((section) => section.id),
  );

const EAGER = "kineto/qwen3_eager.json.gz";
const GRAPH = "kineto/qwen3_graph.json.gz";
const GEMV_BEFORE = "ncu/gemv_before.ncu-repz";
const GEMV_AFTER = "ncu/gemv_after.ncu-repz";

const pages: [string, () => string][] = [
  ...corpusFiles().map((file): [string, () => string] => [file, () => pageOf(file)]),
  ["two traces", () => pageOf(GRAPH, EAGER)],
  ["two reports", () => pageOf(GEMV_AFTER, GEMV_BEFORE)],
];
/** Those that people look at. */
const PICTURED = new Set([
  EAGER,
  GRAPH,
  "kineto/nccl_rank0.json.gz",
  GEMV_BEFORE,
  "two traces",
  "two reports",
  "other/proton_scopes.hatchet",
]);

describe("every page", () => {
  it.each(pages)("%s: opens without complaint, wide, dark and narrow", async (name, make) => {
    const path = make();
    const file = name.replaceAll(/[^a-z0-9_]+/gi, "-");
    await within(path, {}, async (page) => {
      expect(await page.locator("h1").count()).toBe(1);
      expect(await page.locator("main > section").count()).toBeGreaterThan(1);
      expect(await emptySections(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBe(0);
      const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((one) => one.id));
      expect(ids.length).toBe(new Set(ids).size);
      for (const link of await page.locator("nav a").all()) {
        const target = ((await link.getAttribute("href")) ?? "").slice(1);
        expect(ids).toContain(target);
      }
      if (PICTURED.has(name)) await picture(page, `${file}.light`);
    });
    await within(path, { width: 400, height: 800 }, async (page) => {
      expect(await sidewaysScroll(page)).toBe(0);
      if (PICTURED.has(name)) await picture(page, `${file}.narrow`);
    });
    if (PICTURED.has(name)) await within(path, { dark: true }, async (page) => picture(page, `${file}.dark`));
  });
});

/** What a column of a table shows, as numbers; what is missing is NaN. */
const column = (page: Page, section: string, label: string): Promise<number[]> =>
  page.evaluate(
    ([id, wanted]) => {
      const table = document.querySelector(`#${id} table`);
      const heads = [...(table?.querySelectorAll("thead th") ?? [])];
      const at = heads.findIndex((head) => (head.querySelector("button")?.firstChild?.textContent ?? "") === wanted);
      return [...(table?.querySelectorAll("tbody tr") ?? [])].map((row) =>
        Number((row.children[at]?.textContent ?? "").replaceAll(/[,<]/g, "")),
      );
    },
    [section, label] as const,
  );

describe("tables", () => {
  it("are sorted by each head, by mouse and by keyboard", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      const head = page.locator("#operators thead th", { hasText: "calls" });
      await head.locator("button").click();
      expect(await head.getAttribute("aria-sort")).toBe("descending");
      const falling = await column(page, "operators", "calls");
      expect(falling.length).toBeGreaterThan(5);
      expect(falling).toEqual([...falling].sort((a, b) => b - a));
      await page.keyboard.press("Enter");
      expect(await head.getAttribute("aria-sort")).toBe("ascending");
      const rising = await column(page, "operators", "calls");
      expect(rising).toEqual([...rising].sort((a, b) => a - b));
      expect(rising[0]).toBeLessThan(falling[0] as number);
      await page.keyboard.press("Space");
      expect(await head.getAttribute("aria-sort")).toBe("none");
    });
  });

  it("are filtered by text and by expression, and say when it is none", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      const input = page.locator("#operators input[type=search]");
      const names = (): Promise<string[]> => page.locator("#operators tbody th").allTextContents();
      await input.fill("ATEN::M");
      expect((await names()).length).toBeGreaterThan(0);
      for (const name of await names()) expect(name.toLowerCase()).toContain("aten::m");
      await input.fill("/^aten::mul$/");
      expect(await names()).toEqual(["aten::mul"]);
      expect(await page.locator("#operators .table-status").textContent()).toContain("1 of");
      await input.fill("/(/");
      expect(await input.getAttribute("aria-invalid")).toBe("true");
      await input.fill("no such operator");
      expect(await names()).toEqual([]);
      await input.fill("");
      expect((await names()).length).toBeGreaterThan(5);
    });
  });
});

interface Shown {
  name: string;
  from: number;
  to: number;
  said: string;
}
const shown = (page: Page): Promise<Shown> =>
  page.evaluate(() => {
    const root = document.querySelector<HTMLElement>(".lp-timeline");
    return {
      name: root?.dataset["selectedName"] ?? "",
      from: Number(root?.dataset["viewStart"]),
      to: Number(root?.dataset["viewEnd"]),
      said: root?.querySelector("[aria-live]")?.textContent ?? "",
    };
  });

describe("the timeline", () => {
  it("goes to the moment of a suspect", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      await page.waitForSelector(".lp-timeline[data-view-start]");
      const before = await shown(page);
      await page.locator("#suspects .show").first().click();
      await page.waitForFunction(
        (from) => document.querySelector<HTMLElement>(".lp-timeline")?.dataset["viewStart"] !== String(from),
        before.from,
      );
      const after = await shown(page);
      expect(after.to - after.from).toBeLessThan(before.to - before.from);
      expect(await page.evaluate(() => document.activeElement?.closest("section")?.id)).toBe("timeline");
      const top = await page.locator("#timeline").evaluate((one) => one.getBoundingClientRect().top);
      expect(Math.abs(top)).toBeLessThan(200);
    });
  });

  it("zooms to a kernel and tells its name", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      await page.waitForSelector(".lp-timeline[data-view-start]");
      const row = page.locator("#kernels tbody tr", { has: page.locator(".show") }).first();
      const whole =
        (await row.locator(".unfold").count()) > 0
          ? await row.locator(".unfold").getAttribute("title")
          : await row.locator("th .name").first().textContent();
      await row.locator(".show").click();
      await page.waitForFunction(() => (document.querySelector<HTMLElement>(".lp-timeline")?.dataset["selectedName"] ?? "") !== "");
      const now = await shown(page);
      expect(now.name).toBe(whole);
      expect(now.said).not.toBe("");
    });
  });
});

describe("the page", () => {
  it("changes its colours", async () => {
    await within(pageOf(GRAPH), {}, async (page) => {
      const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await ground();
      await page.locator(".theme").click();
      expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
      expect(await ground()).not.toBe(light);
      await page.locator(".theme").click();
      expect(await ground()).toBe(light);
    });
  });

  it("is walked through by keyboard, every stop named and visible", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      await page.keyboard.press("Tab");
      expect(await page.evaluate(() => document.activeElement?.className)).toBe("skip");
      const seen: string[] = [];
      for (let i = 0; i < 90; i++) {
        await page.keyboard.press("Tab");
        const stop = await page.evaluate(() => {
          const one = document.activeElement;
          if (!(one instanceof HTMLElement || one instanceof SVGElement)) return null;
          const style = getComputedStyle(one);
          const box = one.getBoundingClientRect();
          const name = one.getAttribute("aria-label") ?? one.textContent ?? "";
          const marked = style.outlineStyle !== "none" || style.boxShadow !== "none" || one.classList.contains("point");
          return {
            what: `${one.tagName} ${one.getAttribute("class") ?? ""}`,
            name: name.trim(),
            marked,
            size: Math.min(box.width, box.height),
            section: one.closest("section")?.id ?? "",
          };
        });
        if (stop === null) throw new Error(`stop ${i} is nothing`);
        expect(stop.name, stop.what).not.toBe("");
        expect(stop.marked, stop.what).toBe(true);
        expect(stop.size, stop.what).toBeGreaterThan(5);
        seen.push(stop.section);
      }
      // No trap: the walk has left the timeline again.
      expect(seen).toContain("suspects");
      expect(seen).toContain("timeline");
      expect(seen.lastIndexOf("timeline")).toBeLessThan(seen.length - 1);
    });
  });

  it("skips to the report", async () => {
    await within(pageOf(GRAPH), {}, async (page) => {
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
    });
  });

  it("is reached by the address of a section", async () => {
    await within(pageOf(GRAPH), {}, async (page) => {
      await page.locator("nav a", { hasText: "Kernel families" }).click();
      expect(new URL(page.url()).hash).toBe("#families");
      await page.reload();
      await page.waitForSelector("main h2");
      const top = await page.locator("#families").evaluate((one) => one.getBoundingClientRect().top);
      expect(top).toBeLessThan(900);
    });
  });

  it("is printed whole, without controls", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      await page.emulateMedia({ media: "print" });
      await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
      expect(await page.locator("nav").isVisible()).toBe(false);
      expect(await page.locator("#operators input").isVisible()).toBe(false);
      expect(await page.locator("details:not([open])").count()).toBe(0);
      expect(await page.locator("#operators tbody tr").count()).toBeGreaterThan(20);
      expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("light");
      await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
      expect(await page.locator("#operators tbody tr").count()).toBe(15);
      const pdf = await page.pdf({ format: "A4" });
      expect(pdf.subarray(0, 5).toString()).toBe("%PDF-");
    });
  });
});

describe("the roofline", () => {
  it("is read with the keyboard, point by point", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      const told = page.locator("#roofline .told");
      await page.locator("#roofline .point[tabindex='0']").focus();
      const first = await told.textContent();
      expect(first).toMatch(/aten::.*of busy.*FLOPs a byte/);
      await page.keyboard.press("ArrowRight");
      expect(await told.textContent()).not.toBe(first);
      await page.keyboard.press("ArrowLeft");
      expect(await told.textContent()).toBe(first);
    });
  });
});

describe("a report of Nsight Compute", () => {
  it("tells the verdict, what warps wait for, and the hottest instructions", async () => {
    await within(pageOf(GEMV_BEFORE), {}, async (page) => {
      const kernel = page.locator("#kernels > details").first();
      expect(await kernel.locator("summary .bound").textContent()).toContain("too small");
      expect(await kernel.locator(".metrics").count()).toBe(3);
      const text = (await kernel.textContent()) ?? "";
      for (const said of ["long scoreboard", "Uncoalesced Global Accesses", "theoretical", "0x0370", "kern.cu:6"])
        expect(text).toContain(said);
    });
  });
});

describe("copying", () => {
  it("gives the rows of the filter, tab-separated, and says so", async () => {
    await within(pageOf(EAGER), {}, async (page) => {
      await page.locator("#operators input[type=search]").fill("/^aten::mul$/");
      await page.evaluate(() => {
        // What a reader would paste.
        document.addEventListener("copy", () => {
          (window as { copied?: string }).copied = String((document.activeElement as HTMLTextAreaElement | null)?.value);
        });
        Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("not here")) } });
      });
      await page.locator("#operators .copy").click();
      await page.waitForFunction(() => document.querySelector("#operators .table-status")?.textContent?.includes("copied"));
      const lines = (await page.evaluate(() => (window as { copied?: string }).copied ?? "")).split("\n");
      expect(lines).toHaveLength(2);
      expect(lines[0]?.split("\t").slice(0, 2)).toEqual(["operator", "calls"]);
      expect(lines[1]?.split("\t").slice(0, 2)).toEqual(["aten::mul", "1,840"]);
    });
  });
});

describe("what is missing", () => {
  const empty = {
    schema: "longpole.report/1",
    title: "t",
    made_by: "m",
    documents: {},
    before: null,
    cuts: [],
    timeline: null,
    icicle: null,
    curves: [],
    moments: [],
  };

  it.each(["trace", "trace_compare", "ncu", "ncu_compare", "sums", "of another time"])(
    "is a sentence in every section of a page of kind %s",
    async (kind) => {
      await within(withReport(GRAPH, `${kind}.html`, { ...empty, kind }), {}, async (page) => {
        expect(await page.locator("main > section").count()).toBeGreaterThan(0);
        for (const section of await page.locator("main > section").all())
          expect(await section.locator(".none").count(), (await section.textContent()) ?? "").toBeGreaterThan(0);
      });
    },
  );

  it("is said of lists that were shortened, where they stand and in the summary", async () => {
    const cuts = [{ list: "triage.ops", kept: 53, of: 5_300 }];
    await within(withReport(EAGER, "cuts.html", { ...reportOf(EAGER), cuts }), {}, async (page) => {
      expect(await page.locator("#operators .table-status").textContent()).toContain("the page holds 53 of 5,300");
      expect(await page.locator("#kernels .table-status").textContent()).not.toContain("the page holds");
      expect(await page.locator("#summary").textContent()).toContain("left out to keep the page small: 1 list");
    });
  });

  it.each([
    ["cut", "eJyrVkpUslIqSi0uzi9KV"],
    ["no base64", "%%%"],
    ["empty", ""],
    ["of another version", "eJyrVipOzkjNTVSyUsrJz0svyM9J1StKLcgvKtE3UqoFAKcKCrc="],
  ])("says that it cannot be shown when its report is %s", async (name, text) => {
    const opened = await open(browser, withReport(GRAPH, `damaged ${name}.html`, text));
    try {
      expect(await opened.page.locator(".broken").textContent()).toContain("could not be shown");
      expect(opened.complaints).toEqual([]);
    } finally {
      await opened.close();
    }
  });
});

describe("a comparison", () => {
  it("tells the verdict, its interval, and which suspects are gone", async () => {
    await within(pageOf(GRAPH, EAGER), {}, async (page) => {
      const text = (await page.locator("#compare").textContent()) ?? "";
      expect(text).toContain("FASTER");
      expect(text).toContain("host bound");
      expect(text).toMatch(/0\.\d+ to 0\.\d+/);
      expect(await page.locator("#compare .verdict-gone").count()).toBeGreaterThan(0);
      expect(await page.locator("#before").count()).toBe(1);
    });
  });
});

describe("the timelines of a comparison", () => {
  it("stand one above the other, with one scale, and move together until they are let go", async () => {
    await within(pageOf(GRAPH, EAGER), {}, async (page) => {
      const views = page.locator("#timeline .lp-timeline");
      expect(await views.count()).toBe(2);
      expect(await page.locator("#timeline h3", { hasText: "After" }).textContent()).toContain("qwen3_graph");
      expect(await page.locator("#timeline h3", { hasText: "Before" }).textContent()).toContain("qwen3_eager");
      const view = (at: number): Promise<[number, number]> =>
        views.nth(at).evaluate((root) => {
          const { viewStart, viewEnd } = (root as HTMLElement).dataset;
          return [Number(viewStart), Number(viewEnd)];
        });
      const rest = (): Promise<void> => page.waitForTimeout(300);
      const whole = await view(0);
      expect(await view(1)).toEqual(whole);
      await views.nth(0).getByRole("button", { name: "zoom in" }).click();
      await rest();
      const closer = await view(0);
      expect(closer[1] - closer[0]).toBeLessThan(whole[1] - whole[0]);
      expect(await view(1)).toEqual(closer);
      // The other one leads as well.
      await views.nth(1).getByRole("button", { name: "show the whole window" }).click();
      await rest();
      expect([await view(0), await view(1)]).toEqual([whole, whole]);
      const together = page.getByRole("checkbox", { name: "they move together" });
      await together.uncheck();
      await views.nth(1).getByRole("button", { name: "zoom in" }).click();
      await rest();
      expect(await view(0)).toEqual(whole);
      expect(await view(1)).not.toEqual(whole);
      await together.check();
      await rest();
      expect(await view(1)).toEqual(whole);
    });
  });
});

describe("hostile names", () => {
  const trace = (): string => scratch("hostile.json", hostileTrace(4_000));

  it("are shown as text, and nothing of them runs", async () => {
    await within(pageOf(trace()), {}, async (page) => {
      await page.locator("#operators .table-more button", { hasText: "all" }).click();
      await page.waitForFunction(() => document.querySelectorAll("#operators tbody tr").length > 4_000);
      expect(await page.evaluate(() => (window as { ran?: number }).ran)).toBeUndefined();
      expect(await page.locator("img, iframe, object, embed, script[src], link").count()).toBe(0);
      const text = (await page.locator("#operators").textContent()) ?? "";
      for (const name of [NAMES.script, NAMES.image, NAMES.link, NAMES.prototype, NAMES.constructor]) expect(text).toContain(name);
      expect(text).toContain("safe\u27e8U+202E\u27e9exe.yaj");
      expect(text).toContain("\u27e8U+001B\u27e9[31mred");
      // Nothing invisible or turning is left anywhere in the page, be it text or an attribute.
      const left = await page.evaluate(() => {
        const bad = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;
        const found: string[] = [];
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
          if (node instanceof Element)
            for (const one of node.attributes) if (bad.test(one.value)) found.push(`${node.tagName} ${one.name}`);
          if (
            node instanceof Text &&
            bad.test(node.data) &&
            node.parentElement?.tagName !== "SCRIPT" &&
            node.parentElement?.tagName !== "NOSCRIPT"
          )
            found.push(node.data.slice(0, 80));
        }
        return found;
      });
      expect(left).toEqual([]);
      await page.locator("#operators input").fill("onmouseover");
      await page.locator("#operators tbody th").first().hover();
      expect(await page.evaluate(() => (window as { ran?: number }).ran)).toBeUndefined();
    });
  });

  it("do not widen a narrow window", async () => {
    await within(pageOf(trace()), { width: 400 }, async (page) => {
      expect(await sidewaysScroll(page)).toBe(0);
    });
  });
});
