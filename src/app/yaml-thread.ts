/** Parses YAML in its own thread: with enough brackets, anchors or keys, a small file keeps the parser busy for minutes. */
import { parentPort, workerData } from "node:worker_threads";
import { parse } from "yaml";

/** Aliases that repeat what has aliases in it grow without bound: a few lines would fill the memory. */
const maxAliasCount = 100;

try {
  parentPort?.postMessage({ content: parse(String(workerData), { maxAliasCount, logLevel: "error" }) });
} catch (error) {
  parentPort?.postMessage({ failure: String(error) });
}
