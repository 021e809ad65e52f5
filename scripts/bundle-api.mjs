// Bundles the libraries of the HTTP API into it, so that users install none of them (docs/adr/0110). The rest of the package stays outside:
// an error or a class must be the same one on both sides.

import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { build } from "esbuild";
import { licensesOf } from "./licenses.mjs";
import { root } from "./tool.mjs";

/** @param folder the compiled API, which becomes one file. */
export async function bundleApi(folder) {
  const entry = join(folder, "index.js");
  const { metafile } = await build({
    entryPoints: [entry],
    outfile: entry,
    allowOverwrite: true,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node22",
    // Names stay readable in the stack of an error.
    minifySyntax: true,
    minifyWhitespace: true,
    nodePaths: [join(root, "node_modules")],
    plugins: [
      { name: "stay-outside", setup: (esbuild) => stayOutside(esbuild, folder) },
      { name: "english-only", setup: englishOnly },
    ],
    metafile: true,
    logLevel: "warning",
  });
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), licensesOf(packagesOf(metafile)));
  for (const file of globSync("**/*.{js,js.map}", { cwd: folder }))
    if (file !== "index.js") rmSync(join(folder, file));
  const kept = declarationsFrom(join(folder, "index.d.ts"));
  for (const file of globSync("**/*.d.ts", { cwd: folder }))
    if (!kept.has(join(folder, file))) rmSync(join(folder, file));
}

function stayOutside(esbuild, folder) {
  esbuild.onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir, importer }) => {
    if (importer.includes(`${sep}node_modules${sep}`)) return undefined;
    const target = resolve(resolveDir, path);
    if (target.startsWith(folder + sep)) return undefined;
    return { path: relative(folder, target).replaceAll(sep, "/"), external: true };
  });
}

/** Zod speaks fifty languages, a quarter of a megabyte; problems are in English. */
function englishOnly(esbuild) {
  esbuild.onLoad({ filter: /zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
    contents: 'export { default as en } from "./en.js";',
  }));
}

/** The declarations that a user's compiler comes to. None of them may need a library that is bundled. */
function declarationsFrom(file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, specifier] of readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"([^"]+)"/g)) {
    if (specifier.startsWith("./"))
      declarationsFrom(join(dirname(file), specifier.replace(/\.(ts|js)$/, ".d.ts")), seen);
    else if (!specifier.startsWith("../") && !specifier.startsWith("node:"))
      throw new Error(`${file} needs the types of ${specifier}, which users do not have.`);
  }
  return seen;
}

function packagesOf({ inputs }) {
  return Object.keys(inputs).flatMap(
    (path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [],
  );
}
