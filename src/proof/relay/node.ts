/** A node of a run that publishes: a real process with relay, planner and reaper. It writes down what it handed to the broker. */
import { Escapement } from "../../app/escapement.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { systemRuntime } from "../../runtime/runtime.ts";
import { storeFromUrl } from "../../stores/open.ts";
import { CrashPoints } from "../crash-points.ts";
import { asList, defineJobs } from "../definitions.ts";
import { serve } from "../member.ts";
import { NodeLog } from "../node-log.ts";
import { type RelayPlan, takePlan, tamperingOf } from "../node-plan.ts";
import { SkewedRuntime } from "../skewed-clock.ts";
import { storeTarget } from "../store-kind.ts";
import { PublishDrill } from "./drill.ts";
import { NamingWatch } from "./naming-watch.ts";
import { routeOf } from "./routes.ts";
import { watchedRoute } from "./watched-route.ts";

const plan = takePlan<RelayPlan>();
const tampering = await tamperingOf(plan.tampering);
const log = new NodeLog(plan.name, plan.log);
const crashes = new CrashPoints((point) => {
  const nowMs = systemClock.monotonic();
  log.fault("kill", nowMs, nowMs, point);
});
const drill = plan.drill === null ? null : new PublishDrill(plan.drill, plan.name, log);
const namings = new NamingWatch(log);
const skewed = plan.clockOffsetMs === null ? null : new SkewedRuntime(plan.clockOffsetMs);
const route = watchedRoute(await routeOf(plan.route), { log, crashes, drill });
const app = new Escapement(
  {
    store: {
      open: async (context) => {
        const factory = await storeFromUrl(plan.store);
        // SQLite's clock is the machine's: a clock of one process that is off must not make it the store's.
        const clock = storeTarget(plan.store).kind === "sqlite" ? systemClock : context.clock;
        const store = await factory.open({ ...context, clock });
        const fragile = crashes.around(tampering.store?.(store) ?? store);
        return namings.around(drill?.around(fragile) ?? fragile);
      },
    },
    namespace: plan.namespace,
    jobs: asList(defineJobs(plan.retryMs, undefined, route)),
    lease: plan.leaseMs,
    poll: plan.pollMs,
    relay: { partitions: plan.partitions, inFlight: plan.inFlight },
    // The run ends long before the power does.
    acceptWeakDurability: true,
    log: silentLogger,
  },
  skewed ?? systemRuntime,
);
app.on("dispatchRetry", ({ job: { id: job, token }, phase, ambiguous }) =>
  log.relay({ what: "retry", job, token, phase, ambiguous }),
);
app.on("stale", ({ job }) => log.line("stale", job));
app.on("error", ({ error, during }) => log.trouble(during, error));
await serve({
  log,
  leaseMs: plan.leaseMs,
  crashes,
  skewed,
  start: () => app.start({ roles: ["relay", "planner", "reaper"] }),
  stop: () => app.stop({ timeout: "5s" }),
});
