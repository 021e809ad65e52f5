#!/usr/bin/env node
// The version is looked at before anything is loaded that an older Node could not even parse.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `escapement needs Node 22.18 or newer, and this is ${process.versions.node}; install a current Node.`,
  );
  process.exit(1);
}
const { runCommandLine } = await import("./program.ts");
await runCommandLine(process.argv);

export {};
