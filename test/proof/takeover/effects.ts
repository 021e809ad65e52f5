import { DatabaseSync } from "node:sqlite";
import { consume } from "../../../src/consumer/index.ts";
import { createInbox } from "../../../src/inbox/index.ts";
import { defineJob } from "../../../src/index.ts";
import { silentLogger } from "../../../src/log.ts";
import type { Source } from "../../../src/message/source.ts";
import { sqliteInbox } from "../../../src/stores/sqlite/index.ts";

/** Runs each task through an inbox, as a consumer would: one row for each effect. */
export async function startEffects(source: Source, file: string) {
  const database = new DatabaseSync(file);
  database.exec("create table effects (task integer not null)");
  const inbox = createInbox({ store: sqliteInbox(file) });
  let handled = 0;
  let handledAtMs = Date.now();
  const job = defineJob<number>({
    name: "task",
    delivery: "effectively-once",
    async run({ input, tx }) {
      await tx((db: DatabaseSync) => void db.prepare("insert into effects (task) values (?)").run(input));
      handled += 1;
      handledAtMs = Date.now();
    },
  });
  const consumer = consume({
    jobs: [job],
    from: source,
    inbox,
    onDead: () => {},
    concurrency: 50,
    log: silentLogger,
  });
  await consumer.start();
  const count = (what: string): number => {
    const row = database.prepare(`select count(${what}) as many from effects`).get();
    return Number(row?.["many"]);
  };
  return {
    get handled(): number {
      return handled;
    },
    get quietMs(): number {
      return Date.now() - handledAtMs;
    },
    count: () => ({ effects: count("*"), tasksWithEffect: count("distinct task") }),
    async stop(): Promise<void> {
      await consumer.stop();
      await inbox.close();
      database.close();
    },
  };
}
