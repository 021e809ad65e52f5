// A CPU-bound handler runs in a thread and leaves the event loop free.
import { createEscapement, defineJob } from "../src/index.ts";

// #region main
const hash = defineJob<{ text: string; rounds: number }>({
  name: "hash",
  timeout: "30s", // a thread that does not stop in time is terminated
  run: new URL("./handlers/hash.ts", import.meta.url),
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/threads.db", jobs: [hash] });
await app.start();
let turns = 0;
const counter = setInterval(() => {
  turns += 1;
}, 1);

const { id } = await app.enqueue(hash, { text: "escapement", rounds: 200_000 });
console.log(String(await app.result(id)).slice(0, 16));
console.log(`the event loop turned meanwhile: ${turns > 10}`);

clearInterval(counter);
await app.stop();
