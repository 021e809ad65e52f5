// Jobs that wait for others.
import { createEscapement, defineJob } from "../src/index.ts";

const step = defineJob<string>({
  name: "step",
  retry: { attempts: 1 },
  run: ({ input }) => {
    console.log(`running ${input}`);
    if (input === "broken") throw new Error("as planned");
    return input;
  },
});

const app = createEscapement({ store: "sqlite:.escapement/workflow.db", jobs: [step] });

// #region after
const fetched = await app.enqueue(step, "fetch");
const resized = await app.enqueue(step, "resize", { after: [fetched] });
const tagged = await app.enqueue(step, "tag", { after: [fetched] });
const published = await app.enqueue(step, "publish", { after: [resized, tagged] });
// #endregion

const broken = await app.enqueue(step, "broken");
const orphan = await app.enqueue(step, "never", { after: [broken.id] });
const cleanUp = await app.enqueue(step, "clean up", { after: [broken.id], afterFailure: "run" });

await app.start();
await app.result(published.id);
await app.result(cleanUp.id);
const job = await app.get(orphan.id);
console.log(`${job?.state}: ${job?.reason?.replace(broken.id, "broken")}`);
await app.stop();
