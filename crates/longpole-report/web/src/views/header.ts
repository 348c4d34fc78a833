/** How far the numbers can be believed, what was read, and what the run was on. */
import type { Triage } from "../documents";
import { figures, prose } from "../parts";
import { type Child, h } from "../text";
import { bytes, count, plural, time } from "../units";

type Trust = Triage["trust"];
type Note = Trust["notes"][number];

const MEANING: Record<Trust["grade"], string> = {
  good: "no data was lost",
  noted: "no data was lost, some events needed care",
  partial: "data was lost, totals are lower bounds",
};
const MARK: Record<Trust["grade"], string> = { good: "\u25cf", noted: "\u25d0", partial: "\u25cb" };

/** Facts that change no number and ask nothing of the reader stay out, as in the terminal. */
const worthALine = (note: Note): boolean => note.severity !== "info" || note.hint !== "nothing to do";

function noteLine(note: Note): Child {
  const often = note.count > 1 ? `${count(note.count)} times` : "once";
  const aside = note.time_ns === null ? often : `${often}, ${time(note.time_ns)}`;
  return h(
    "li",
    { class: `note note-${note.severity.replace("_", "-")}` },
    h("span", { class: "severity" }, note.severity.replace("_", " ")),
    " ",
    note.message,
    h("span", { class: "aside" }, ` (${aside})`),
    note.example === null ? null : [", e.g. ", h("code", {}, note.example)],
    note.hint === "" ? null : h("span", { class: "hint" }, " \u2192 ", prose(note.hint)),
  );
}

export function trust(of: Trust): HTMLElement {
  const lines = of.notes.filter(worthALine);
  return h(
    "div",
    { class: `trust trust-${of.grade}` },
    h(
      "p",
      { class: "grade" },
      h("strong", {}, h("span", { "aria-hidden": "true" }, `${MARK[of.grade]} `), `trust ${of.grade}`),
      `: ${MEANING[of.grade]}`,
    ),
    lines.length === 0 ? null : h("ul", { class: "notes" }, lines.map(noteLine)),
  );
}

export function source(of: { path: string; format: string; bytes: number; events: number }): string {
  return `${of.path} \u00b7 ${of.format} \u00b7 ${bytes(of.bytes)} uncompressed \u00b7 ${plural(of.events, "event", "events")}`;
}

/** The scope in words; null for the whole trace. */
export function scope(of: Triage["scope"]): string | null {
  const parts: string[] = [];
  if (of.range !== null) parts.push(`range ${of.range}`);
  if (of.step !== null) parts.push(`step ${of.step}`);
  if (of.start_ns !== null || of.end_ns !== null)
    parts.push(`time ${time(of.start_ns ?? 0)} to ${of.end_ns === null ? "the end" : time(of.end_ns)}`);
  if (of.device !== null) parts.push(`device ${of.device}`);
  if (of.rank !== null) parts.push(`rank ${of.rank}`);
  return parts.length === 0 ? null : parts.join(" \u00b7 ");
}

export function hardware(of: Triage["hardware"]): string {
  const kinds = new Map<string, number>();
  const active = of.devices.filter((one) => one.active);
  for (const device of active.length > 0 ? active : of.devices) {
    const facts = [
      device.sm_count === null ? null : `${count(device.sm_count)} SMs`,
      device.memory_bytes === null ? null : bytes(device.memory_bytes),
      device.peak_dram_bytes_per_s === null ? null : `${(device.peak_dram_bytes_per_s / 1e12).toFixed(2)} TB/s`,
    ].filter((fact) => fact !== null);
    const name = `${device.name ?? "device not named"}${facts.length === 0 ? "" : ` (${facts.join(", ")})`}`;
    kinds.set(name, (kinds.get(name) ?? 0) + 1);
  }
  const devices = [...kinds].map(([name, n]) => (n > 1 ? `${n} x ${name}` : name));
  if (devices.length === 0) devices.push("device not recorded");
  else if (active.length === 0) devices.push("none with activity");
  const versions = [of.cuda === null ? null : `CUDA ${of.cuda}`, of.driver === null ? null : `driver for ${of.driver}`].filter(
    (one) => one !== null,
  );
  return [...devices, ...versions].join(" \u00b7 ");
}

export function facts(list: [string, Child][]): HTMLElement {
  return figures(
    list.map(([label, value]) => ({ label, value })),
    "facts",
  );
}
