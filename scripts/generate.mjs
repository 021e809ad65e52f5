// Fills the code blocks of Markdown files from the examples that are compiled and run:
//
//   <!-- snippet examples/quickstart.ts#main -->     all of the file, or the lines between `// #region main`
//   …                                                and `// #endregion`
//   <!-- /snippet -->
//
// A region of TypeScript comes with the imports of its file that it uses.
//
// and writes the API's description, the types of its client, and the stores' policy (policy-files.mjs).
//
// `npm run generate` writes; with `--check` it writes nothing and fails when something is stale.

import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { apiFiles } from "./api-description.mjs";
import { formatLua } from "./format-lua.mjs";
import { policyFiles } from "./policy-files.mjs";
import { importsFor } from "./snippet-imports.mjs";
import { root } from "./tool.mjs";

const check = process.argv.includes("--check");
const block = /(<!-- snippet (\S+) -->\n)[\s\S]*?(<!-- \/snippet -->)/g;

let stale = 0;
for (const path of globSync("{*.md,docs/**/*.md,examples/**/*.md}", { cwd: root })) {
  const before = readFileSync(join(root, path), "utf8");
  const after = before.replace(block, (_, open, source, close) => `${open}\n${fence(source)}\n\n${close}`);
  if (after === before) continue;
  stale++;
  if (check) console.log(`${path} is stale: run \`npm run generate\` and commit the result.`);
  else writeFileSync(join(root, path), after);
}
for (const [path, text] of Object.entries(await apiFiles())) renew(path, formatted(path, text));
for (const [path, text] of Object.entries(policyFiles()))
  renew(path, path.endsWith(".lua") ? formatLua(text) : text);
if (!check) console.log(`${stale} file${stale === 1 ? "" : "s"} changed.`);
else if (stale > 0) process.exitCode = 1;

/** As all files are. */
function formatted(path, text) {
  const biome = [join(root, "node_modules/@biomejs/biome/bin/biome"), "format", "--stdin-file-path", path];
  return execFileSync(process.execPath, biome, { cwd: root, input: text, encoding: "utf8" });
}

/** Writes a file that is made, or says that it is stale. */
function renew(path, after) {
  const before = existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : "";
  if (after === before) return;
  stale++;
  if (check) console.log(`${path} is stale: run \`npm run generate\` and commit the result.`);
  else writeFileSync(join(root, path), after);
}

function fence(source) {
  const [path, region] = source.split("#");
  const code = asConsumer(path, readFileSync(join(root, path), "utf8"));
  const body = (region ? cut(code, region, source) : code).replaceAll(/^[ \t]*\/\/ #(end)?region.*\n/gm, "");
  const shown = region && extname(path) === ".ts" ? importsFor(code, body) + body : body;
  return `\`\`\`${extname(path).slice(1)}\n${shown.trim()}\n\`\`\``;
}

function cut(code, region, source) {
  const [, body] = code.match(new RegExp(`// #region ${region}\n([\\s\\S]*?)\n\\s*// #endregion`)) ?? [];
  if (body === undefined) throw new Error(`There is no region "${region}" in ${source}.`);
  const indent = Math.min(
    ...body
      .split("\n")
      .filter((line) => line.trim())
      .map((line) => line.search(/\S/)),
  );
  return body.replaceAll(new RegExp(`^ {${indent}}`, "gm"), "");
}

/** Examples import the sources; a reader imports the package: `../src/index.ts` stands for `escapement`. */
function asConsumer(path, code) {
  const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(exports).reduce((text, [subpath, target]) => {
    if (!target.default) return text;
    const source = target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts");
    return text.replaceAll(`"${relative(dirname(path), source)}"`, `"${name}${subpath.slice(1)}"`);
  }, code);
}
