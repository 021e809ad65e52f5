// What a person does: change, cancel, look at what is dead, and redrive it.
import { setTimeout as sleep } from "node:timers/promises";
import { createEscapement, defineJob } from "../src/index.ts";

let bankIsDown = true;

function payAtBank(_invoice: number): void {
  if (bankIsDown) throw new Error("the bank does not answer");
}

// #region handler
const pay = defineJob<{ invoice: number }>({
  name: "pay",
  retry: { attempts: 1 },
  run: ({ input, log, progress }) => {
    log(`paying invoice ${input.invoice}`);
    progress({ percent: 50 });
    payAtBank(input.invoice); // your own function; the job fails with what it throws
  },
});
// #endregion

// #region signal
const copy = defineJob<null>({
  name: "copy",
  run: ({ signal }) => sleep(60_000, "copied", { signal }), // the signal stops it
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/operations.db", jobs: [pay, copy] });
await app.start();

const copying = await app.enqueue(copy, null);
while ((await app.get(copying.id))?.state !== "active") await sleep(10);
// #region cancel
await app.cancel(copying, { reason: "wrong folder" }); // what enqueue returned; or an id, a list of ids, a filter
// #endregion
await app.result(copying.id).catch(() => {});
console.log(`copy is ${(await app.get(copying.id))?.state}`);

// #region update
const later = await app.enqueue(pay, { invoice: 6 }, { delay: "1h" });
await app.update(later, { input: { invoice: 7 }, delay: 0, priority: 5 }); // only what has not started
// #endregion
const { id } = later;
await app.result(id).catch((error) => console.log(error.code));
bankIsDown = false;

// #region redrive
const { jobs } = await app.list({ states: ["dead"], names: ["pay"] });
console.log(`dead: ${jobs.length}, ${jobs[0]?.error?.message}`);
await app.redrive({ states: ["dead"], names: ["pay"] }, { reason: "the bank is back" });
// #endregion

await app.result(id);
// #region trail
for (const { at, kind, text, error } of await app.trail(id)) {
  console.log(`${kind}: ${text ?? error?.message}, ${at.toISOString()}`);
}
// #endregion
await app.stop();
