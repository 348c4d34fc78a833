/**
 * Writes `src/documents.ts`: the types of the documents that a report holds, from their schemas in docs/schema, so that a view that
 * reads what a document does not have fails the type check. Run by `npm run documents`; CI checks that its output is committed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const NAMES = ["triage", "steps", "idle", "roofline", "memory", "diff", "ncu", "ncu_compare"];
const at = (path) => fileURLToPath(new URL(path, import.meta.url));

function typeOf(schema, indent) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(one, indent)).join(" | ");
  const types = [schema.type ?? []].flat();
  if (types.length === 0) return "unknown";
  return types
    .map((type) => {
      switch (type) {
        case "integer":
        case "number":
          return "number";
        case "string":
        case "boolean":
        case "null":
          return type;
        case "array": {
          const item = typeOf(schema.items ?? {}, indent);
          return /[|]/.test(item) && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
        }
        case "object":
          return objectOf(schema, indent);
        default:
          throw new Error(`no such type: ${type}`);
      }
    })
    .join(" | ");
}

function objectOf(schema, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties ?? {}).map(([name, value]) => {
    const optional = schema.required?.includes(name) === true ? "" : "?";
    return `${inner}${name}${optional}: ${typeOf(value, inner)};`;
  });
  if (typeof schema.additionalProperties === "object") lines.push(`${inner}[key: string]: ${typeOf(schema.additionalProperties, inner)};`);
  return lines.length === 0 ? "Record<string, unknown>" : `{\n${lines.join("\n")}\n${indent}}`;
}

const parts = NAMES.map((name) => {
  const schema = JSON.parse(readFileSync(at(`../../../../docs/schema/longpole.${name}.1.schema.json`), "utf8"));
  const type = name.replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
  return `/** ${schema.title ?? `longpole.${name}/1`} */\nexport interface ${type} ${objectOf(schema, "")}\n`;
});
writeFileSync(at("../src/documents.ts"), `/** Made from docs/schema by scripts/documents.mjs: do not edit. */\n\n${parts.join("\n")}`);
