import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { luaFiles } from "../lua/files.ts";
import type { Link } from "./link.ts";

interface Script {
  readonly source: string;
  readonly sha: string;
}

const loaded = new Map<string, Script>();

/**
 * A script as it is sent: the shared parts that it uses, then the verb's own. Those that it names as rare are in a function that runs
 * when one of them is first needed: most calls need none, and creating their functions takes longer than the rest of a small call.
 */
export function sourceOf(own: string): string {
  return inlineConstants(
    partsOf(own)
      .map(({ text }) => text)
      .join("\n"),
  );
}

/** A piece of a script, with the file that it is from; null: it is the script's own, or holds others together. */
interface Part {
  readonly name: string | null;
  readonly text: string;
}

/** What a script is made of, in order. */
export function partsOf(own: string): readonly Part[] {
  const glue = (text: string): Part => ({ name: null, text });
  const rare = partsNamed("rarely", own);
  const wrapped = rare.length === 0 ? [] : [glue("makeRare = function()"), ...rare, glue("end")];
  return [...partsNamed("uses", own), ...wrapped, glue(own)];
}

function loadScript(name: string): Script {
  const known = loaded.get(name);
  if (known !== undefined) return known;
  const source = sourceOf(textOf(`${name}.lua`));
  const script = { source, sha: createHash("sha1").update(source).digest("hex") };
  loaded.set(name, script);
  return script;
}

/** The shared parts that a line in the head of a script names. */
function partsNamed(word: string, script: string): Part[] {
  const names = new RegExp(`^-- ${word}: (.+)$`, "m").exec(script)?.[1]?.split(" ") ?? [];
  return names.map((part) => ({ name: `shared/${part}.lua`, text: textOf(`shared/${part}.lua`) }));
}

function textOf(name: string): string {
  const text = luaFiles[name];
  assert(text !== undefined, `expected lua/ to have ${name}, which a verb asks for`);
  return text;
}

/** Replaces names in capitals with their numbers: Lua has room for 200 locals in a script, and a number is read faster. */
function inlineConstants(source: string): string {
  const values = new Map<string, string>();
  const rest = source.replace(/^local ([A-Z, ]+) = ([\d, ]+)$/gm, (_, names: string, numbers: string) => {
    const all = numbers.split(", ");
    for (const [index, name] of names.split(", ").entries()) values.set(name, all[index] ?? "");
    return "";
  });
  return rest.replace(/\b[A-Z]+\b/g, (name) => values.get(name) ?? name);
}

/** Runs a script by its digest, and sends its source if the server does not know it: after a restart, a failover or a flush. */
export async function runScript(
  link: Link,
  name: string,
  key: string,
  args: readonly (string | Buffer | number)[],
): Promise<unknown> {
  const { source, sha } = loadScript(name);
  try {
    return await link.call("EVALSHA", [sha, 1, key, ...args]);
  } catch (error) {
    if (
      !(error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith("NOSCRIPT"))
    )
      throw error;
  }
  return link.call("EVAL", [source, 1, key, ...args]);
}
