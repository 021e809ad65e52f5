import { faults, findings, number, type ProofRun, seconds, sum, table } from "./proof-page.ts";

/** The part of the page about runs in which relays published and consumers handled. */
export function relayProof(runs: readonly ProofRun[], command: string, day: string): string {
  const jobs = sum(runs, ({ data }) => sum(data.guarantees, (one) => one.jobs));
  const kills = sum(runs, ({ data }) => faults(data, "kill"));
  const violations = sum(runs, ({ data }) => data.violations.length);
  return `## Published through a broker

<!-- Written by \`${command}\`; do not edit. -->

The same with \`--to\`, measured on ${day}: ${number(jobs)} jobs, ${number(kills)} processes killed, ${number(violations)} promises broken. The nodes are relays, and consumers behind the broker handle the messages through an inbox. A separate client reads what is in the broker at the end.

${table(
  [
    "from → to",
    "guarantee",
    "jobs",
    "messages in the broker",
    "lost",
    "duplicated",
    "other promises broken",
    "published again after a fault",
    "effects doubled",
    "dead (refused)",
    "lost with its reason",
    "takeover p50 / p99 / max",
  ],
  runs.flatMap(({ data }) => routedRowsOf(data)),
)}
${findings(runs)}
- **lost**: acknowledged, and not in the broker, or not handled behind it, or not ended. **Duplicated**: published again without a fault that explains it, or at all for at-most-once; in the broker more often than published, or although it was refused; two effects of one job.
- **published again after a fault**: the bound is faults × in flight, for the three guarantees together. An at-most-once job is dead when its publish was refused, and lost, with its reason, when the publish was ambiguous.

${table(
  [
    "from → to",
    "time",
    "kills",
    "pauses",
    "cuts: store / broker / both",
    "restarts: store / broker",
    "rollbacks: refused / ambiguous / could not be written",
    "drill: naming / publish / rollback",
    "partitions granted",
  ],
  runs.map(({ data }) => routedHarmOf(data)),
)}

A restart of the broker kills the leader of the stream if there is a cluster (NATS). The drill makes publishes fail on purpose, and the writes before and after them.

\`\`\`sh
${command}
${runs.map((run) => run.command).join("\n")}
\`\`\`

On your own store and broker: \`escapement verify --store URL --to URL\`.
`;
}

function routedRowsOf(data: ProofRun["data"]): string[][] {
  return data.guarantees.map((one) => {
    const { delivery, broken, recovery } = one;
    const named = broken.lost + broken.missed + broken.stuck + broken.duplicated;
    const isOnce = delivery === "at-most-once";
    return [
      data.engine,
      delivery,
      number(one.jobs),
      number(one.dispatches),
      number(broken.lost + broken.missed + broken.stuck),
      number(broken.duplicated),
      number(sum(Object.values(broken), (count) => count) - named),
      isOnce ? "0" : `${number(one.reruns)} (bound ${number(data.reruns.bound)})`,
      delivery === "effectively-once" ? number(one.effectsDoubled) : "",
      isOnce ? number(one.dead) : "",
      isOnce ? number(one.givenUp) : "",
      recovery.count === 0 ? "" : [recovery.p50Ms, recovery.p99Ms, recovery.maxMs].map(seconds).join(" / "),
    ];
  });
}

function routedHarmOf(data: ProofRun["data"]): string[] {
  const counts = (...kinds: string[]): string => kinds.map((kind) => number(faults(data, kind))).join(" / ");
  const { rollbacks, drills, grants } = data.relay ?? {};
  const many = (...values: (number | undefined)[]): string =>
    values.map((one) => number(one ?? 0)).join(" / ");
  return [
    data.engine,
    seconds(data.durationMs),
    counts("kill"),
    counts("pause"),
    counts("network", "broker", "both"),
    counts("restart", "broker-restart"),
    many(rollbacks?.refused, rollbacks?.ambiguous, rollbacks?.failed),
    many(drills?.dispatched_write, drills?.publish, drills?.rollback_write),
    many(grants),
  ];
}
