// The other process of the pickup scenario: enqueues a job each time it is told to.

import { systemClock } from "../src/clock.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import type { StoreAddress, StoreFactory } from "../src/store/opening.ts";

const { module, options }: StoreAddress = JSON.parse(process.argv[2] ?? "");
const { openStore }: { openStore(options: unknown, context: unknown): ReturnType<StoreFactory["open"]> } =
  await import(module);

const stamped = defineJob<{ sentAtMs: number }>({ name: "stamped" });
const app = createEscapement({ store: { open: (context) => openStore(options, context) } });
await app.count();

process.on("message", () => {
  void app.enqueue(stamped, { sentAtMs: systemClock.monotonic() }).then(({ id }) => process.send?.(id));
});
process.on("disconnect", () => void app.stop());
process.send?.("ready");
