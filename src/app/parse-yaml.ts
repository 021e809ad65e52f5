import { Worker as Thread } from "node:worker_threads";
import { siblingModule } from "../runtime/sibling-module.ts";

const withinMs = 20_000;
const resourceLimits = { maxOldGenerationSizeMb: 256 };

type Answer = { readonly content: unknown } | { readonly failure: string };

/** Parses YAML without holding up this process: leases are renewed and handlers run meanwhile, and a hostile file is abandoned after a while. */
export async function parseYaml(text: string): Promise<unknown> {
  const module = siblingModule(import.meta.url, "yaml-thread");
  // A bundle has no file for the thread.
  if (module === null) return (await import("./read-yaml.ts")).readYaml(text);
  const thread = new Thread(module, { workerData: text, resourceLimits });
  try {
    const answer = await new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(
            new Error(`parsing it took longer than ${withinMs} ms; it is nested too deeply, or too large`),
          ),
        withinMs,
      );
      const settle = (settled: () => void): void => {
        clearTimeout(timer);
        settled();
      };
      thread.once("message", (message: Answer) => settle(() => resolve(message)));
      thread.once("error", (error) => settle(() => reject(error)));
      thread.once("exit", () => settle(() => reject(new Error("the thread that parses it ended"))));
    });
    if ("content" in answer) return answer.content;
    throw new Error(answer.failure);
  } finally {
    await thread.terminate();
  }
}
