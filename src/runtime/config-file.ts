import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { types } from "node:util";
import { EscapementError } from "../errors.ts";
import { readSmallFile } from "./small-file.ts";

/** What a config file exports, not checked yet. */
export interface ConfigFile {
  /** As messages call it. */
  readonly name: string;
  readonly options: object;
}

const names = ["ts", "mts", "js", "mjs", "json"].map((extension) => `escapement.config.${extension}`);

/** Files that are being loaded: one that needs itself would never be done. */
const loading = new Set<string>();

/** Reads the config file of a folder, at once; null if there is none. */
export function readConfigFile(folder: string): ConfigFile | null {
  const file = findConfigFile(folder);
  if (file === null) return null;
  refuseCycle(file);
  if (file.endsWith(".json")) return parseJson(file);
  loading.add(file);
  try {
    readSmallFile(file);
    return exportOf(file, createRequire(file)(file));
  } catch (error) {
    throw asLoadError(file, error);
  } finally {
    loading.delete(file);
  }
}

/** Loads a config file, also one that awaits something before it exports. */
export async function loadConfigFile(path: string): Promise<ConfigFile> {
  const file = resolve(path);
  if (!existsSync(file)) {
    throw new EscapementError("invalid-option", `there is no config file ${file}; check the path`);
  }
  if (file.endsWith(".json")) return parseJson(file);
  loading.add(file);
  try {
    readSmallFile(file);
    return exportOf(file, await import(pathToFileURL(file).href));
  } catch (error) {
    throw asLoadError(file, error);
  } finally {
    loading.delete(file);
  }
}

/** The config file of a folder; null if there is none. */
export function findConfigFile(folder: string): string | null {
  return names.map((name) => resolve(join(folder, name))).find((file) => existsSync(file)) ?? null;
}

function refuseCycle(file: string): void {
  if (!loading.has(file)) return;
  throw new EscapementError(
    "invalid-option",
    `${basename(file)} imports a module that calls createEscapement() without store and jobs, which reads ${basename(file)} again; give that call both, or call it outside what the config imports`,
  );
}

/** A CommonJS file exports its options itself, an ES module as its default. */
function exportOf(file: string, module: unknown): ConfigFile {
  if (types.isModuleNamespaceObject(module) && !hasDefault(module)) throw withoutDefault(file, module);
  const exported: unknown = hasDefault(module) ? module.default : module;
  const options = hasDefault(exported) ? exported.default : exported;
  if (isApp(options)) {
    throw new EscapementError(
      "invalid-option",
      `expected the default export of ${basename(file)} to be options, got an app; export what createEscapement is called with, and call it where you need the app`,
    );
  }
  if (typeof options === "object" && options !== null) return { name: basename(file), options };
  throw new EscapementError(
    "invalid-option",
    `expected the default export of ${basename(file)} to be an object with options, got ${typeof options}`,
  );
}

function withoutDefault(file: string, module: unknown): EscapementError {
  const [first = "{ store, jobs }"] = Object.keys(Object(module));
  return new EscapementError(
    "invalid-option",
    `${basename(file)} has no default export; export the options by it: export default ${first}`,
  );
}

/** By its verbs: a bundle, or another copy of the library, may have made it. */
function isApp(value: unknown): boolean {
  return typeof value === "object" && value !== null && "enqueue" in value && "start" in value;
}

function hasDefault(module: unknown): module is { readonly default: unknown } {
  return typeof module === "object" && module !== null && "default" in module;
}

function parseJson(file: string): ConfigFile {
  try {
    return { name: basename(file), options: JSON.parse(readSmallFile(file)) };
  } catch (error) {
    throw new EscapementError("invalid-option", `cannot read ${file}: ${String(error)}`, { cause: error });
  }
}

function asLoadError(file: string, error: unknown): EscapementError {
  if (error instanceof EscapementError) return error;
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : null;
  const advice = adviceOn(basename(file), String(error), code);
  return new EscapementError("invalid-option", `cannot load ${file}: ${advice ?? String(error)}`, {
    cause: error,
  });
}

/** What to do about the errors that Node words for itself rather than for us. */
function adviceOn(name: string, message: string, code: unknown): string | null {
  if (code === "ERR_REQUIRE_ASYNC_MODULE")
    return `it has a top-level await, and createEscapement cannot wait; import the file yourself and pass what it exports: createEscapement(options)`;
  if (code === "ERR_REQUIRE_CYCLE_MODULE")
    return `it is being imported already, by a module that it imports; give createEscapement both store and jobs there, or call it outside what the config imports`;
  if (message.includes("Cannot use import statement outside a module"))
    return `package.json says "type": "commonjs", and this file or one that it imports is an ES module; call it ${name.replace(/\.([tj]s)$/, ".m$1")}, or set "type": "module"`;
  return null;
}
