import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tool.mjs";

/** The licences of packages whose code is in ours: they ask to go with it. */
export function licensesOf(names) {
  return [...new Set(names)]
    .sort()
    .map((name) => {
      const folder = join(root, "node_modules", name);
      const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const [file] = globSync("{LICENSE,LICENCE,license}*", { cwd: folder });
      const text =
        file === undefined ? `License: ${license}` : readFileSync(join(folder, file), "utf8").trim();
      return `${name} ${version}\n\n${text}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}
