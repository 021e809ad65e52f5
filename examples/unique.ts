// Unique jobs and debounced ones: many calls, one job.
import { createEscapement, defineJob } from "../src/index.ts";

// #region unique
const sync = defineJob<{ account: string }>({
  name: "sync",
  unique: { key: (input) => input.account, for: "pending" }, // or for: "1h"
  run: ({ input }) => `synced ${input.account}`,
});
// #endregion

// #region debounce
const index = defineJob<{ page: string; revision: number }>({
  name: "index",
  debounce: { key: (input) => input.page, wait: "200ms", max: "1m" },
  run: ({ input }) => `indexed ${input.page} at revision ${input.revision}`,
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/unique.db", jobs: [sync, index] });

const first = await app.enqueue(sync, { account: "42" });
const second = await app.enqueue(sync, { account: "42" });
console.log(`${first.outcome}, ${second.outcome}, the same job: ${first.id === second.id}`);

const saved = await app.enqueue(index, { page: "home", revision: 1 });
await app.enqueue(index, { page: "home", revision: 2 });
await app.enqueue(index, { page: "home", revision: 3 });

await app.start();
console.log(await app.result(first.id));
console.log(await app.result(saved.id));
await app.stop();
