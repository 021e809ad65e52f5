// Jobs that wait for others, and one that collects their results.
import { createEscapement, defineJob, type HandlerContext } from "../src/index.ts";

const step = defineJob<string>({
  name: "step",
  retry: { attempts: 1 },
  run: ({ input }) => {
    console.log(`running ${input}`);
    if (input === "broken") throw new Error("as planned");
    return input;
  },
});

// #region collect
const count = defineJob({
  name: "count",
  run: ({ input }: HandlerContext<{ text: string }>) => input.text.split(" ").length,
});

const total = defineJob({
  name: "total",
  run: async ({ input, get }: HandlerContext<{ parts: string[] }>) => {
    const parts = await Promise.all(input.parts.map((id) => get<number>(id)));
    return parts.reduce((sum, part) => sum + (part?.result ?? 0), 0);
  },
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/workflow.db", jobs: [step, count, total] });

// #region after
const fetched = await app.enqueue(step, "fetch");
const resized = await app.enqueue(step, "resize", { after: [fetched] });
const tagged = await app.enqueue(step, "tag", { after: [fetched] });
const published = await app.enqueue(step, "publish", { after: [resized, tagged] });
// #endregion

const broken = await app.enqueue(step, "broken");
const orphan = await app.enqueue(step, "never", { after: [broken.id] });
const cleanUp = await app.enqueue(step, "clean up", { after: [broken.id], afterFailure: "run" });

// #region fan
const counts = await app.enqueueMany(count, [
  { input: { text: "fan out" } },
  { input: { text: "and back in" } },
]);
const sum = await app.enqueue(total, { parts: counts.map(({ id }) => id) }, { after: counts });
// #endregion

await app.start();
console.log(`words: ${await app.result(sum)}`);
await app.result(published.id);
await app.result(cleanUp.id);
const job = await app.get(orphan.id);
console.log(`${job?.state}: ${job?.reason?.replace(broken.id, "broken")}`);
await app.stop();
