import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const assets = fileURLToPath(new URL("../assets/", import.meta.url));

/**
 * The page embeds the script as it stands and allows it by its hash, so the script must survive the HTML parser unchanged and must
 * not leave its element: plain ASCII, no carriage return, and none of the three texts that switch the parser's state.
 */
function embedded(): Plugin {
  return {
    name: "embedded",
    closeBundle() {
      // The minifier unescapes characters; escaped they mean the same in strings, templates and expressions of the one, and in
      // strings of the other.
      const script = readFileSync(`${assets}report.js`, "utf8").replace(
        /[^\0-\x7f]/g,
        (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );
      const style = readFileSync(`${assets}report.css`, "utf8").replace(
        /[^\0-\x7f]/gu,
        (c) => `\\${(c.codePointAt(0) ?? 0).toString(16).padStart(6, "0")}`,
      );
      writeFileSync(`${assets}report.js`, script);
      writeFileSync(`${assets}report.css`, style);
      for (const text of ["</script", "<script", "<!--", "\r", "\0"]) {
        if (script.toLowerCase().includes(text)) throw new Error(`report.js holds ${JSON.stringify(text)}, which a page cannot embed`);
      }
      for (const text of ["</style", "\r", "url(", "@import"]) {
        if (style.toLowerCase().includes(text)) throw new Error(`report.css holds ${JSON.stringify(text)}, which a page cannot embed`);
      }
      const strange = /[^\n\t\x20-\x7e]/.exec(script) ?? /[^\n\t\x20-\x7e]/.exec(style);
      if (strange !== null) throw new Error(`the assets hold ${JSON.stringify(strange[0])}, but must be plain ASCII`);
      writeFileSync(`${assets}report.js.sha256`, createHash("sha256").update(script).digest("base64"));
      writeFileSync(`${assets}report.css.sha256`, createHash("sha256").update(style).digest("base64"));
    },
  };
}

export default defineConfig({
  plugins: [embedded()],
  publicDir: false,
  build: {
    outDir: assets,
    emptyOutDir: false,
    target: "es2022",
    sourcemap: false,
    modulePreload: false,
    reportCompressedSize: false,
    cssCodeSplit: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "longpole", fileName: () => "report.js", cssFileName: "report" },
  },
  test: { include: ["test/**/*.test.ts"] },
});
