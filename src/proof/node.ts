/** A node of a run: a real process with every role. It does as it is told, and writes down what its handlers did. */
import { Escapement } from "../app/escapement.ts";
import { systemClock } from "../clock.ts";
import type { HandlerContext } from "../handler.ts";
import { createInbox } from "../inbox/inbox.ts";
import { silentLogger } from "../log.ts";
import { type Runtime, systemRuntime } from "../runtime/runtime.ts";
import type { StoreFactory } from "../store/opening.ts";
import { storeFromUrl } from "../stores/open.ts";
import { sqliteInbox } from "../stores/sqlite/inbox.ts";
import { ClaimTimes } from "./claim-times.ts";
import { CrashPoints } from "./crash-points.ts";
import { asList, defineJobs, type Script, type ScriptResult } from "./definitions.ts";
import { writeEffect } from "./effects.ts";
import { serve } from "./member.ts";
import { NodeLog } from "./node-log.ts";
import { type NodePlan, type Tampering, takePlan, tamperingOf } from "./node-plan.ts";
import { SkewedRuntime } from "./skewed-clock.ts";
import { type StoreKind, storeTarget } from "./store-kind.ts";

class VerifyNode {
  readonly #plan: NodePlan;
  readonly #tampering: Tampering;
  readonly #log: NodeLog;
  readonly #crashes: CrashPoints;
  readonly #claims = new ClaimTimes();
  readonly #skewed: SkewedRuntime | null;
  readonly #app: Escapement;
  readonly #kind: StoreKind;

  constructor(plan: NodePlan, tampering: Tampering) {
    this.#plan = plan;
    this.#tampering = tampering;
    this.#kind = storeTarget(plan.store).kind;
    this.#log = new NodeLog(plan.name, plan.log);
    this.#crashes = new CrashPoints((point) => {
      const nowMs = systemClock.monotonic();
      this.#log.fault("kill", nowMs, nowMs, point);
    });
    this.#skewed = plan.clockOffsetMs === null ? null : new SkewedRuntime(plan.clockOffsetMs);
    this.#app = this.#createApp(this.#skewed ?? systemRuntime);
  }

  async serve(): Promise<void> {
    this.#app.on("succeeded", ({ job }) => this.#log.line("done", job));
    this.#app.on("stale", ({ job }) => this.#log.line("stale", job));
    this.#app.on("error", ({ error, during }) => this.#log.trouble(during, error));
    await serve({
      log: this.#log,
      leaseMs: this.#plan.leaseMs,
      crashes: this.#crashes,
      skewed: this.#skewed,
      start: () => this.#app.start(),
      stop: () => this.#app.stop({ timeout: "5s" }),
    });
  }

  #createApp(runtime: Runtime): Escapement {
    const { namespace, leaseMs, pollMs, concurrency, retryMs, inbox } = this.#plan;
    const jobs = defineJobs(retryMs, (context) => this.#run(context));
    return new Escapement(
      {
        store: this.#factory(),
        namespace,
        jobs: asList(jobs),
        lease: leaseMs,
        poll: pollMs,
        concurrency,
        // The run ends long before the power does.
        acceptWeakDurability: true,
        log: silentLogger,
        ...(inbox === null ? {} : { inbox: this.#createInbox(inbox) }),
      },
      runtime,
    );
  }

  #createInbox(path: string) {
    const store = sqliteInbox({ path, durability: "normal" });
    return createInbox({ store: this.#tampering.inbox?.(store) ?? store, lease: this.#plan.leaseMs });
  }

  #factory(): StoreFactory {
    const { store: url } = this.#plan;
    return {
      open: async (context) => {
        const factory = await storeFromUrl(url);
        // SQLite's clock is the machine's: a clock of one process that is off must not make it the store's.
        const clock = this.#kind === "sqlite" ? systemClock : context.clock;
        const store = await factory.open({ ...context, clock });
        return this.#claims.around(this.#crashes.around(this.#tampering.store?.(store) ?? store));
      },
    };
  }

  async #run({ input, job, tx }: HandlerContext<Script>): Promise<ScriptResult> {
    this.#crashes.pass("before handler");
    this.#log.start(job, this.#claims.take(job));
    if (input.ms > 0) await new Promise((resolve) => setTimeout(resolve, input.ms));
    if (job.attempt - job.crashes + job.redrives <= input.failures) {
      this.#log.line("end", job, "threw");
      throw new Error("the script wants it so");
    }
    const result = { token: job.token };
    if (job.delivery === "effectively-once") {
      this.#log.line("effect", job);
      const row = { run: this.#plan.namespace, job: job.id, token: job.token };
      try {
        await tx((db: Parameters<typeof writeEffect>[0]) => {
          const written = writeEffect(db, this.#kind, row);
          this.#crashes.pass("in the middle of a transaction");
          // On SQLite the transaction is over with this turn, so nothing may be awaited.
          return written instanceof Promise ? written.then(() => result) : result;
        });
      } catch (error) {
        this.#log.line("end", job, "refused");
        throw error;
      }
    }
    this.#log.line("end", job, "returned");
    this.#crashes.pass("after handler");
    return result;
  }
}

const plan = takePlan<NodePlan>();
await new VerifyNode(plan, await tamperingOf(plan.tampering)).serve();
