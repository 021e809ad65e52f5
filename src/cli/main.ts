#!/usr/bin/env node
import { checkNode } from "../runtime/node-version.ts";

// The version is checked before anything is loaded that an older Node could not even parse.
try {
  checkNode();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
const { runCommandLine } = await import("./program.ts");
await runCommandLine(process.argv);
