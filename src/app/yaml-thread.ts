/** Parses YAML in its own thread: with enough brackets, anchors or keys, a small file keeps the parser busy for minutes. */
import { parentPort, workerData } from "node:worker_threads";
import { readYaml } from "./read-yaml.ts";

try {
  parentPort?.postMessage({ content: readYaml(String(workerData)) });
} catch (error) {
  parentPort?.postMessage({ failure: String(error) });
}
