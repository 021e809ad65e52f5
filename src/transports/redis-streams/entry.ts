import type { Message } from "../../message/message.ts";
import type { ReceivedMessage } from "../../message/source.ts";

/** Fields that are not headers. */
const own = ["key", "dedupe-id", "body"];

/** A message as the fields of a stream's entry: its headers under their own names, and three more. */
export function encodeEntry({ key, dedupeId, headers, body }: Message): string[] {
  const fields = ["key", key, "dedupe-id", dedupeId];
  for (const name of Object.keys(headers)) if (!own.includes(name)) fields.push(name, headers[name] ?? "");
  fields.push("body", body);
  return fields;
}

export function decodeEntry(fields: readonly string[]): ReceivedMessage {
  const all: Record<string, string> = {};
  for (let at = 0; at + 1 < fields.length; at += 2) all[fields[at] ?? ""] = fields[at + 1] ?? "";
  const headers = Object.fromEntries(Object.entries(all).filter(([name]) => !own.includes(name)));
  return { key: all["key"] ?? "", headers, body: all["body"] ?? "" };
}
