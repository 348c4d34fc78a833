/** Rows of a step added up by role, and ceilings in words. */
import type { Steps } from "../documents";
import { plural, words } from "../units";

type Group = Steps["groups"][number];
type Row = Group["rows"][number];
type Ceiling = Group["ceilings"][number];

/** Neighbouring kernels of one role, added up. */
export interface RoleRow {
  part: string;
  role: string;
  from: string;
  kernel: string;
  names: string[];
  calls: number;
  ns: number;
  total: number;
  share: number;
  floor: number | null;
  ceiling: number | null;
}

function partName(group: Group, row: Row): string {
  if (row.part !== "layer") return row.part;
  const kind = row.layer_kind === null ? undefined : group.layer_kinds[row.layer_kind];
  const letter = group.layer_kinds.length > 1 && row.layer_kind !== null ? ` ${String.fromCharCode(65 + (row.layer_kind % 26))}` : "";
  return kind === undefined ? "layer" : `layer${letter} x ${kind.count}`;
}

/** Rows by role in the order of the step. A floor needs the floor of every kernel that has work behind it. */
export function byRole(group: Group): RoleRow[] {
  const rows = new Map<string, RoleRow & { longest: number }>();
  for (const row of group.rows) {
    const part = partName(group, row);
    const key = `${part}\u0000${row.role}`;
    const known = rows.get(key);
    if (known === undefined) {
      rows.set(key, {
        part,
        role: row.role,
        from: row.role_from,
        kernel: row.kernel,
        names: [row.kernel_name],
        calls: row.calls_per_step,
        ns: row.ns_per_step,
        total: row.total_ns,
        share: row.share_fraction,
        floor: row.floor_ns,
        ceiling: row.ceiling_ns,
        longest: row.ns_per_step,
      });
      continue;
    }
    if (row.ns_per_step > known.longest) {
      known.longest = row.ns_per_step;
      known.kernel = row.kernel;
    }
    known.names.push(row.kernel_name);
    known.calls += row.calls_per_step;
    known.ns += row.ns_per_step;
    known.total += row.total_ns;
    known.share += row.share_fraction;
    known.floor = known.floor === null || row.floor_ns === null ? null : known.floor + row.floor_ns;
    known.ceiling = known.ceiling === null && row.ceiling_ns === null ? null : (known.ceiling ?? 0) + (row.ceiling_ns ?? 0);
  }
  return [...rows.values()];
}

const SUPPOSED: Record<string, string> = {
  at_memory_floor: " at its memory floor",
  at_compute_floor: " at its compute floor",
  work_free: " gone",
};

export function change(ceiling: Ceiling): string {
  const place = ceiling.part === "layer" ? " in all layers" : "";
  switch (ceiling.subject) {
    case "role":
      return `${ceiling.roles.join(", ")}${place}${SUPPOSED[ceiling.kind] ?? ` ${words(ceiling.kind)}`}`;
    case "chain": {
      const named = ceiling.roles.filter((role, i) => role !== ceiling.roles[i - 1]);
      const others = named.length > 3 ? ` and ${named.length - 3} more` : "";
      return `${plural(ceiling.roles.length, "kernel", "kernels")} in a row fused (${named.slice(0, 3).join(", ")}${others})${place}`;
    }
    case "step":
      return "the step replayed from a graph";
    case "idle":
      return `no idle time inside a step for ${words(ceiling.cause ?? "any cause")}`;
  }
}
