// Formats the Lua of the Redis store; with `--check` it writes nothing and fails where a file is not formatted.

import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  CollapseSimpleStatement,
  Config,
  formatCode,
  IndentType,
  LineEndings,
  LuaVersion,
  OutputVerification,
  QuoteStyle,
} from "@johnnymorganz/stylua";
import { root } from "./tool.mjs";

/** Lua as it is to be written. */
export function formatLua(text) {
  const config = Config.new();
  config.syntax = LuaVersion.Lua51;
  config.column_width = 140;
  config.indent_type = IndentType.Spaces;
  config.indent_width = 2;
  config.line_endings = LineEndings.Unix;
  config.quote_style = QuoteStyle.AutoPreferDouble;
  config.collapse_simple_statement = CollapseSimpleStatement.ConditionalOnly;
  return formatCode(text, config, undefined, OutputVerification.Full);
}

function main(check) {
  for (const path of globSync("src/**/*.lua", { cwd: root })) {
    const before = readFileSync(join(root, path), "utf8");
    const after = formatLua(before);
    if (after === before) continue;
    if (!check) writeFileSync(join(root, path), after);
    else {
      console.log(`${path} is not formatted: run \`npm run format\`.`);
      process.exitCode = 1;
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main(process.argv.includes("--check"));
