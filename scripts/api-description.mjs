// What is made from the schemas of the HTTP API: its description (docs/openapi.json), and the types of its client.

import { createApi } from "../src/api/index.ts";
import { createEscapement } from "../src/index.ts";

/** The files, by their paths. */
export async function apiFiles() {
  const app = createEscapement({ store: "memory:" });
  const api = createApi(app, { insecure: true });
  const response = await api(new Request("http://localhost/openapi.json"));
  const document = await response.json();
  await app.stop();
  return {
    "docs/openapi.json": `${JSON.stringify(document, null, 2)}\n`,
    "src/api-client/wire.ts": typesOf(document),
  };
}

function typesOf({ components }) {
  const types = Object.entries(components.schemas).map(([name, schema]) => {
    const type = typeOf(schema, "");
    return type.startsWith("{") ? `export interface ${name} ${type}` : `export type ${name} = ${type};`;
  });
  return `// Made from the schemas of the API by \`npm run generate\`; do not edit.\n\n${types.join("\n\n")}\n`;
}

/** A type for a JSON schema, as far as our schemas go. */
function typeOf(schema, indent) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return [...new Set(union.map((one) => typeOf(one, indent)))].join(" | ");
  if (schema.allOf) return schema.allOf.map((one) => typeOf(one, indent)).join(" & ");
  if (Array.isArray(schema.type))
    return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  if (schema.type === "array") return `readonly ${bracketed(typeOf(schema.items, indent))}[]`;
  if (schema.type === "object") return objectType(schema, indent);
  const plain = { string: "string", number: "number", integer: "number", boolean: "boolean", null: "null" };
  return plain[schema.type] ?? "unknown";
}

function objectType({ properties, required = [], additionalProperties }, indent) {
  if (properties === undefined) {
    const value = additionalProperties ? typeOf(additionalProperties, indent) : "unknown";
    return `Readonly<Record<string, ${value}>>`;
  }
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(([key, one]) => {
    const doc = one.description === undefined ? "" : `${inner}/** ${one.description} */\n`;
    const mark = required.includes(key) ? "" : "?";
    return `${doc}${inner}readonly ${key}${mark}: ${typeOf(one, inner)};`;
  });
  const isOpen = additionalProperties !== false && additionalProperties !== undefined;
  if (isOpen) lines.push(`${inner}readonly [other: string]: unknown;`);
  return `{\n${lines.join("\n")}\n${indent}}`;
}

function bracketed(type) {
  return /[|&]/.test(type) || type.startsWith("readonly ") ? `(${type})` : type;
}
