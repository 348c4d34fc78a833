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
  const short = `{ ${lines.map((line) => line.trim()).join(" ")} }`;
  if (lines.length > 0 && short.length <= 110 && !short.includes("\n")) return short;
  return lines.length === 0 ? "Record<string, unknown>" : `{\n${lines.join("\n")}\n${indent}}`;
}

const pascal = (name) => name.replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
const schemas = NAMES.map((name) => [name, JSON.parse(readFileSync(at(`../../../../docs/schema/longpole.${name}.1.schema.json`), "utf8"))]);

// Parts that several documents have alike (source, trust, scope ...) get a name of their own.
const alike = new Map();
for (const [document, schema] of schemas) {
  for (const [name, value] of Object.entries(schema.properties)) {
    const text = typeOf(value, "");
    if (!text.startsWith("{\n")) continue;
    const known = alike.get(text) ?? { name, document, count: 0 };
    known.count += 1;
    alike.set(text, known);
  }
}
const named = new Map();
for (const [text, { name, document, count }] of alike) {
  if (count < 2) continue;
  const taken = [...named.values()].includes(pascal(name));
  named.set(text, taken ? `${pascal(document)}${pascal(name)}` : pascal(name));
}

const shared = [...named].map(([text, name]) => `export type ${name} = ${text};\n`);
const documents = schemas.map(([name, schema]) => {
  const lines = Object.entries(schema.properties).map(([key, value]) => {
    const optional = schema.required?.includes(key) === true ? "" : "?";
    return `  ${key}${optional}: ${named.get(typeOf(value, "")) ?? typeOf(value, "  ")};`;
  });
  return `/** ${schema.title ?? `longpole.${name}/1`} */\nexport interface ${pascal(name)} {\n${lines.join("\n")}\n}\n`;
});
const text = `/** Made from docs/schema by scripts/documents.mjs: do not edit. */\n\n${[...shared, ...documents].join("\n")}`;
writeFileSync(at("../src/documents.ts"), text);
