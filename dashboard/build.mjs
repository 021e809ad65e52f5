import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const source = join(import.meta.dirname, "src");

/** The page as texts, by their path: one script, one sheet of styles, the icon and the frame around them. */
export async function buildPage() {
  const [script, styles] = await Promise.all([
    bundle("main.tsx", {
      format: "esm",
      target: "es2022",
      jsx: "automatic",
      jsxImportSource: "preact",
    }),
    bundle("styles/app.css", { target: ["chrome123", "firefox120", "safari17.5"] }),
  ]);
  return {
    "index.html": readFileSync(join(source, "index.html"), "utf8"),
    "assets/app.js": script,
    "assets/app.css": styles,
    "assets/icon.svg": readFileSync(join(source, "icon.svg"), "utf8"),
  };
}

async function bundle(entry, options) {
  const { outputFiles } = await build({
    entryPoints: [join(source, entry)],
    bundle: true,
    minify: true,
    write: false,
    legalComments: "none",
    logLevel: "error",
    ...options,
  });
  return outputFiles[0].text;
}
