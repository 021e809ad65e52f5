// The smallest complete program: define a job, enqueue it, run it, stop.
// #region main
import { createEscapement, defineJob } from "../src/index.ts";

const greet = defineJob<{ name: string }>({
  name: "greet",
  retry: { attempts: 3, backoff: { delay: "1s" } },
  run: async ({ input, job }) => `Hello, ${input.name}! (attempt ${job.attempt})`,
});

const app = createEscapement({ store: "sqlite:.escapement/quickstart.db", jobs: [greet] });
await app.start();

const { id } = await app.enqueue(greet, { name: "Ada" }, { delay: "200ms" });
console.log(await app.result(id));

await app.stop();
// #endregion
