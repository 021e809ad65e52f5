import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

interface Locked {
  readonly hasInstallScript?: boolean;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly resolved?: string;
}

const read = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, "..", name), "utf8"));
const manifest = read("package.json");
const locked = Object.entries<Locked>(read("package-lock.json").packages).filter(([path]) =>
  path.startsWith("node_modules/"),
);

/** Packages that may run a script when they are installed, each with the reason. */
const mayRunScripts: Readonly<Record<string, string>> = {
  "node_modules/esbuild": "checks its own binary; only tests use it, and npm ci runs no scripts here",
};

test("no dependency runs a script when it is installed", () => {
  const scripted = locked
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([path]) => path);
  assert.deepEqual(
    scripted.filter((path) => !Object.hasOwn(mayRunScripts, path)),
    [],
    "look at the script before you name it in mayRunScripts",
  );
  for (const name of ["preinstall", "install", "postinstall", "prepare"]) {
    assert.equal(manifest.scripts[name], undefined, `users would run ${name} when they install this package`);
  }
});

test("the scripts that set a clone up run none of the dependencies'", () => {
  const source = readFileSync(join(import.meta.dirname, "../scripts/install.mjs"), "utf8");
  assert.match(source, /\["ci",.* "--ignore-scripts"/);
});

test("every locked package is pinned by the hash of its content, and comes from a registry", () => {
  const own = locked.filter(([, { link, resolved = "" }]) => link === true || resolved.startsWith("tools/"));
  const unpinned = locked.filter((one) => !own.includes(one) && !/^sha512-/.test(one[1].integrity ?? ""));
  assert.deepEqual(
    unpinned.map(([path]) => path),
    [],
  );
  const ranges = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.peerDependencies };
  const elsewhere = Object.entries<string>(ranges).filter(([, range]) => /[:/]/.test(range));
  assert.deepEqual(elsewhere, [], "from a repository or an address, nothing is pinned");
});

test("a user installs these dependencies and no others", () => {
  assert.deepEqual(Object.keys(manifest.dependencies), ["@standard-schema/spec", "commander", "yaml"]);
  const { peerDependencies, peerDependenciesMeta } = manifest;
  for (const name of Object.keys(peerDependencies))
    assert.equal(peerDependenciesMeta[name].optional, true, name);
});

test("what is published is the build, the docs and the change log, with a statement of where it was built", () => {
  assert.deepEqual(manifest.files, [
    "dist",
    "docs",
    "examples/observability",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
  ]);
  assert.equal(manifest.publishConfig.provenance, true);
});
