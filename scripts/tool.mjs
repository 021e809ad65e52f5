import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));

const tools = {
  node: [],
  tsc: ["node_modules/typescript/bin/tsc"],
  biome: ["node_modules/@biomejs/biome/bin/biome"],
  knip: ["node_modules/knip/bin/knip.js"],
};

/** Runs a development tool on this Node and gives back its exit code and everything it printed. */
export function runTool(name, args) {
  const child = spawn(process.execPath, [...tools[name], ...args], {
    cwd: root,
    env: { ...process.env, ...(process.stdout.isTTY && { FORCE_COLOR: "1" }) },
  });
  const chunks = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  child.stderr.on("data", (chunk) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output: Buffer.concat(chunks).toString() }));
  });
}
