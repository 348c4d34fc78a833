/** Reads the page's two texts and mounts its views. */
import type { Report } from "./data";
import { inflate } from "./decode";
import { startTheme } from "./theme";
import { h } from "./text";
import { mountPage } from "./page";
import "./theme.css";
import "./styles/base.css";
import "./styles/summary.css";
import "./styles/tables.css";
import "./styles/plots.css";
import "./styles/narrow.css";

async function start(): Promise<void> {
  const [report, bytes] = await Promise.all([read("longpole-report"), read("longpole-events")]);
  const parsed = JSON.parse(new TextDecoder().decode(report)) as Report;
  if (parsed.schema !== "longpole.report/1")
    throw new Error(`this page holds ${String(parsed.schema)}, its script reads longpole.report/1`);
  mountPage(document.body, parsed, bytes);
}

async function read(id: string): Promise<Uint8Array> {
  const text = document.getElementById(id)?.textContent ?? "";
  return text.trim() === "" ? new Uint8Array() : inflate(text);
}

startTheme();
start().catch((error: unknown) => {
  const what = error instanceof Error ? error.message : String(error);
  document.body.append(h("p", { role: "alert", class: "broken" }, `This page could not be shown: ${what}. Was the file cut?`));
});
