// Jobs by the calendar: each time fires once across all nodes, and a ledger records what became of it.
import { setTimeout as sleep } from "node:timers/promises";
import { createEscapement, defineJob, explainCron, nextFireTimes, parseCron } from "../src/index.ts";

const report = defineJob<{ region: string }>({
  name: "report",
  run: ({ input, job }) => `${input.region}, for ${job.fireAt.toISOString()}`,
});

const app = createEscapement({ store: "sqlite:.escapement/schedules.db", jobs: [report] });
await app.start();

// #region schedule
const weekdays = { cron: "30 2 * * mon-fri", timezone: "Europe/Berlin" };
await app.schedule("nightly", { ...weekdays, misfire: "once", overlap: "skip" }, report, { region: "all" });
await app.schedule("pulse", { every: "200ms", limit: 3 }, report, { region: "north" });
// #endregion

const startedAt = new Date();
console.log(`nightly fires ${explainCron(weekdays.cron)}`);
// #region functions
const [next] = nextFireTimes("0 2 * * *"); // the next time, in UTC
const some = nextFireTimes(weekdays, { after: new Date("2026-03-27T12:00:00Z"), count: 10 }); // Date[]
const words = explainCron("30 2 * * mon-fri"); // "at 02:30, on Monday to Friday"
const { hours } = parseCron("0 9-17/2 * * *"); // [9, 11, 13, 15, 17]
// #endregion
console.log(some[0]?.toISOString());
console.log([next !== undefined, words, hours].join());

while ((await app.getSchedule("pulse"))?.nextAt !== null) await sleep(50);

// #region ask
await app.pauseSchedule("nightly");
const { id } = await app.triggerNow("nightly"); // runs its job now, in addition to its regular times
console.log(await app.result(id));

for (const { fireAt, fate, lateMs } of await app.occurrences("pulse", { from: startedAt })) {
  console.log(`pulse at ${fireAt.toISOString()}: ${fate}, ${lateMs} ms late`);
}
console.log((await app.explain("nightly@2026-01-01T12:00:00Z")).join("\n")); // why did it (not) run?
// #endregion

await app.unschedule("pulse");
await app.unschedule("nightly");
await app.stop();
