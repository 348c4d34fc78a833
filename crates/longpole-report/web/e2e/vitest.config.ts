import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  // One browser, one page at a time: the tests measure nothing that others would disturb, and the machine may be small.
  test: { include: ["*.test.ts"], fileParallelism: false, testTimeout: 60_000, hookTimeout: 120_000 },
});
