/**
 * A node whose handlers write through `tx`, and which comes to harm there when it is told to: its loop blocks, or the process stops, at a
 * point of the transaction that the driver's calls show.
 */
import { appendFileSync } from "node:fs";
import mysql2 from "mysql2";
import pg from "pg";
import { createEscapement, defineJob, type HandlerContext } from "../../src/index.ts";

export interface EffectNodePlan {
  readonly store: string;
  readonly log: string;
  readonly lease: number;
}

/** `block-sent`: its loop blocks once the last statements of the transaction are sent. `block-answered`: once they are answered. `stop`: it stops in the middle of `tx`. */
export type Harm = "none" | "block-sent" | "block-answered" | "stop";
export type Payment = { readonly harm: Harm; readonly blockMs: number };

const plan: EffectNodePlan = JSON.parse(process.argv[2] ?? "{}");

function write(what: string, { job }: Pick<HandlerContext<unknown>, "job">): void {
  const line = [what, job.id, job.token, process.pid, process.hrtime.bigint() / 1_000_000n].join(" ");
  appendFileSync(plan.log, `${line}\n`);
}

/** The first statement in which the job's row is locked. */
const end = /succeed_effect|txid_current\(\)::text = \$1|release savepoint/;
let armed: Payment | null = null;

function harmAt(point: Harm, text: unknown): void {
  if (armed?.harm !== point || !end.test(String(text))) return;
  const { blockMs } = armed;
  armed = null;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
}

type Query = (...values: unknown[]) => unknown;

/** Stands between the store and its driver. */
function watch(prototype: object): void {
  const original: Query = Reflect.get(prototype, "query");
  Reflect.set(prototype, "query", function watched(this: unknown, ...values: unknown[]): unknown {
    const [given] = values;
    const text = typeof given === "object" && given !== null && "sql" in given ? given.sql : given;
    const callback = values.at(-1);
    if (typeof callback === "function") {
      values[values.length - 1] = (...answer: unknown[]): unknown => {
        harmAt("block-answered", text);
        return Reflect.apply(callback, undefined, answer);
      };
    }
    const answer = Reflect.apply(original, this, values);
    // On the wire first: what is blocked is the way back.
    setImmediate(() => harmAt("block-sent", text));
    if (!(answer instanceof Promise)) return answer;
    return answer.then((value: unknown) => {
      harmAt("block-answered", text);
      return value;
    });
  });
}

watch(pg.Client.prototype);
watch(Reflect.get(mysql2, "Connection").prototype);

interface Database {
  query(sql: string): Promise<unknown>;
}

const pay = defineJob<Payment>({
  name: "pay",
  delivery: "effectively-once",
  async run(context) {
    const { input, job, tx } = context;
    write("start", context);
    const first = job.token === 1;
    await tx(async (db: Database) => {
      await db.query(`insert into effects (job) values ('${job.id}')`);
      if (first && input.harm === "stop") process.kill(process.pid, "SIGSTOP");
      if (first) armed = input;
    });
    write("end", context);
  },
});

const neighbour = defineJob<{ ms: number }>({
  name: "neighbour",
  delivery: "at-most-once",
  async run(context) {
    write("start", context);
    await new Promise<void>((resolve, reject) => {
      setTimeout(resolve, context.input.ms);
      context.signal.addEventListener("abort", () => reject(context.signal.reason));
    });
    write("end", context);
  },
});

const app = createEscapement({
  store: plan.store,
  jobs: [pay, neighbour],
  lease: plan.lease,
  poll: 100,
  concurrency: 10,
});
app.on("error", ({ error, during }) => console.error(during, error));
await app.start();
process.send?.("ready");
