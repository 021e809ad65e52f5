import { type ErrorCode, EscapementError } from "../errors.ts";

interface Needed {
  readonly code: Extract<ErrorCode, `${string}-missing-client`>;
  /** Who cannot do without the packages. */
  readonly who: string;
  readonly packages: readonly string[];
}

/** For the `catch` of an optional client's `import()`: throws an error that says to install it, or why it cannot be loaded. */
export function cannotLoad({ code, who, packages }: Needed): (cause: unknown) => never {
  const names = packages.join(" and ");
  const noun = packages.length === 1 ? "package" : "packages";
  return (cause) => {
    if (packages.some((name) => isMissing(name, cause))) {
      const command = `npm install ${packages.join(" ")}`;
      throw new EscapementError(code, `${who} needs the ${noun} ${names}; run: ${command}`, { cause });
    }
    const why = cause instanceof Error ? cause.message : String(cause);
    // These are esbuild's words: its bundles in ESM form have no require() for clients in CommonJS.
    const advice = why.startsWith("Dynamic require of") ? `; mark ${names} as external in the bundler` : "";
    throw new EscapementError(code, `${who} cannot load the ${noun} ${names}: ${why}${advice}`, { cause });
  };
}

/** False if something that the package itself needs is missing. */
function isMissing(name: string, cause: unknown): boolean {
  if (!(cause instanceof Error) || !("code" in cause)) return false;
  const isNotFound = cause.code === "ERR_MODULE_NOT_FOUND" || cause.code === "MODULE_NOT_FOUND";
  const [, missing] = /['"](.+?)['"]/.exec(cause.message) ?? [];
  return isNotFound && missing === name;
}
