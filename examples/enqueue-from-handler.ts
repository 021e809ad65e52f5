// Handlers that enqueue, with and without a transaction, and typed results.
import type { DatabaseSync } from "node:sqlite";
import { createEscapement, defineJob, type HandlerContext } from "../src/index.ts";

// #region results
const resize = defineJob({
  name: "resize",
  run: ({ input }: HandlerContext<{ page: number; width: number }>) => input.width * 2, // types both input and result
});
// #endregion

// #region handler
const album = defineJob({
  name: "album",
  run: async ({ input, job, enqueue }: HandlerContext<{ pages: number }>) => {
    for (let page = 1; page <= input.pages; page++) {
      // The page stays even if this attempt fails later. With a fixed id, the retry finds it instead of adding it again.
      await enqueue(resize, { page, width: 100 }, { id: `${job.id}/${page}` });
    }
  },
});
// #endregion

// #region tx
const order = defineJob({
  name: "order",
  delivery: "effectively-once",
  run: ({ input, tx, enqueue }: HandlerContext<{ item: string }>) =>
    tx((db: DatabaseSync) => {
      db.prepare("insert into orders (item) values (?)").run(input.item);
      void enqueue(album, { pages: 2 }); // order, album and this job's success commit together
    }),
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/handlers.db", jobs: [resize, album, order] });
await app.migrate();
const { DatabaseSync: Database } = await import("node:sqlite");
new Database(".escapement/handlers.db").exec("create table if not exists orders (item text)");
await app.start();

// #region receipt
const receipt = await app.enqueue(resize, { page: 1, width: 21 });
const doubled: number = await app.result(receipt); // the receipt knows what its job returns
// #endregion
console.log(`doubled: ${doubled}`);

await app.result(await app.enqueue(album, { pages: 3 }, { id: "holidays" }));
await app.result("holidays/3");
console.log(
  `pages: ${await app.count({ names: ["resize"], ids: ["holidays/1", "holidays/2", "holidays/3"] })}`,
);

await app.result(await app.enqueue(order, { item: "photo book" }));
console.log(`albums: ${await app.count({ names: ["album"] })}`);

// #region many
const [parent, child] = await app.enqueueMany([
  { job: album, input: { pages: 0 }, id: "empty" },
  { job: resize, input: { page: 1, width: 1 }, after: ["empty"] },
]); // both or neither
// #endregion
console.log(`${parent.outcome}, ${child.outcome}`);
console.log(`width: ${await app.result(child)}`);

// #region delete
await app.delete(parent); // or a list, or a filter such as { names: ["album"], states: ["succeeded"] }
// #endregion
console.log(`deleted: ${await app.get(parent)}`);
await app.stop();
