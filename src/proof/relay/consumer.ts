/** A consumer of a run: a real process that handles what was published, and writes down what it received and did. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { systemClock } from "../../clock.ts";
import { consume, httpEndpoint } from "../../consumer/index.ts";
import type { HandlerContext } from "../../handler.ts";
import { createInbox } from "../../inbox/inbox.ts";
import { silentLogger } from "../../log.ts";
import { readFacts } from "../../message/facts.ts";
import type { Source } from "../../message/source.ts";
import { sqliteInbox } from "../../stores/sqlite/inbox.ts";
import { override } from "../../testing/override.ts";
import { loadBroker } from "../brokers/target.ts";
import { CrashPoints } from "../crash-points.ts";
import { asList, defineJobs, type Script, type ScriptResult } from "../definitions.ts";
import { writeEffect } from "../effects.ts";
import { serve } from "../member.ts";
import { NodeLog } from "../node-log.ts";
import { type ConsumerPlan, takePlan } from "../node-plan.ts";
import { secretOf } from "./routes.ts";

const plan = takePlan<ConsumerPlan>();
const log = new NodeLog(plan.name, plan.log);
const inbox = createInbox({
  store: sqliteInbox({ path: plan.inbox, durability: "normal" }),
  lease: plan.leaseMs,
});
const handlers = { jobs: asList(defineJobs(plan.retryMs, run)), inbox, log: silentLogger };

async function run({ input, job, tx }: HandlerContext<Script>): Promise<ScriptResult> {
  log.start(job, null);
  if (input.ms > 0) await new Promise((resolve) => setTimeout(resolve, input.ms));
  if (job.delivery === "effectively-once") {
    log.line("effect", job);
    const row = { run: plan.namespace, job: job.id, token: job.token };
    try {
      await tx((db: Parameters<typeof writeEffect>[0]) => void writeEffect(db, "sqlite", row));
    } catch (error) {
      log.line("end", job, "refused");
      throw error;
    }
  }
  log.line("end", job, "returned");
  return { token: job.token };
}

function received(headers: Readonly<Record<string, string | undefined>>): void {
  const { id: job, token, attempt } = readFacts(headers);
  log.relay({ what: "receive", job, token, attempt });
}

/** Tells of every message before anything is done with it. */
function watched(source: Source): Source {
  return override(source, {
    open: async (context) => {
      const session = await source.open(context);
      return override(session, {
        run: (deliver, signal) =>
          session.run(async (one) => {
            received(one.message.headers);
            await deliver(one);
          }, signal),
      });
    },
  });
}

async function startConsumer(kind: Exclude<ConsumerPlan["route"]["kind"], "http">) {
  const { url, topic } = plan.route;
  const source = (await loadBroker(kind)).source(url, topic, plan.leaseMs);
  const consumer = consume({
    ...handlers,
    from: watched(source),
    concurrency: plan.concurrency,
    onDead: ({ error }) => log.trouble("handling a message", error),
  });
  await consumer.start();
  return () => consumer.stop({ timeout: "5s" });
}

async function startReceiver() {
  const { url, topic } = plan.route;
  const endpoint = httpEndpoint({ ...handlers, secret: secretOf(topic) });
  const server: Server = createServer((request, response) => {
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, value?.toString()]),
    );
    received(headers);
    const { id: job, token } = readFacts(headers);
    response.once("finish", () =>
      log.relay({ what: "reply", job, token, taken: response.statusCode === 200 }),
    );
    endpoint(request, response);
  });
  server.listen(Number(new URL(url).port), "127.0.0.1");
  await once(server, "listening");
  return async () => {
    server.closeAllConnections();
    await endpoint.stop();
  };
}

let stop = async (): Promise<void> => {};
const { kind } = plan.route;
await serve({
  log,
  leaseMs: plan.leaseMs,
  crashes: new CrashPoints(() => log.fault("kill", systemClock.monotonic(), systemClock.monotonic(), "")),
  skewed: null,
  start: async () => {
    stop = kind === "http" ? await startReceiver() : await startConsumer(kind);
  },
  stop: async () => {
    await stop();
    await inbox.close();
  },
});
