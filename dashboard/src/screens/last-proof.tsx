import type { VNode } from "preact";
import type { LastVerifyReport, VerifyReport } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { count, sentence, span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Copy } from "../parts/copy.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";

/** The last run of `escapement verify`, if this server finds its report. */
export function LastProof(): VNode {
  const last = useQuery<LastVerifyReport>("verify", {}, { everyMs: 60_000 });
  return (
    <section class="stack" aria-labelledby="proof">
      <h2 id="proof">The last proof</h2>
      <Answer of={last}>
        {({ report, problem }) => (report === null ? <None problem={problem} /> : <Report report={report} />)}
      </Answer>
    </section>
  );
}

const command = "npx escapement verify --duration 30s";

function None({ problem }: { readonly problem: string | null }): VNode {
  return (
    <div class="panel stack">
      {problem !== null && (
        <p role="alert">
          The report cannot be read. <Text value={sentence(problem)} most={300} />
        </p>
      )}
      <p>
        <code>escapement verify</code> runs a workload on its own store, kills processes and cuts connections
        meanwhile, and checks every job against its guarantee.
      </p>
      <p>
        Run it beside <code>escapement.config.ts</code> and its report is shown here: <code>{command}</code>{" "}
        <Copy text={command} what="the command" />
      </p>
    </div>
  );
}

function Report({ report }: { readonly report: VerifyReport }): VNode {
  const faults = Object.entries(report.faults).map(([kind, many]) => `${count(many)} ${kind}`);
  return (
    <div class="panel stack">
      <p class="row">
        {report.valid ? (
          <Badge tone="good">✓ kept</Badge>
        ) : (
          <Badge tone="bad">{`✕ broken: ${count(report.violationCount)} violations`}</Badge>
        )}
        <span>
          on <Text value={report.engine} most={100} />, <Time at={report.at} />
        </span>
      </p>
      <ul class="plain-list lines">
        {report.guarantees.map((one) => (
          <li key={one.delivery}>
            <strong>{one.delivery}</strong>: {count(one.jobs)} jobs, {count(one.dispatches)} dispatches,{" "}
            {count(one.reruns)} again after a fault
            {one.delivery === "effectively-once" && `, ${count(one.effects)} effects`}
            {one.givenUp > 0 && `, ${count(one.givenUp)} lost with a reason`}.{" "}
            {one.broken === 0 ? "None broke its promise." : `${count(one.broken)} broke their promise.`}
          </li>
        ))}
      </ul>
      <dl class="facts">
        <dt>Faults</dt>
        <dd>{faults.length === 0 ? "none" : faults.join(", ")}</dd>
        <dt>Stale outcomes refused</dt>
        <dd>{count(report.staleRefused)}</dd>
        <dt>Recovery</dt>
        <dd>
          {report.recovery.count === 0
            ? "no job was interrupted"
            : `${span(report.recovery.p50Ms)} at p50, ${span(report.recovery.p99Ms)} at p99, of ${count(report.recovery.count)} interrupted jobs`}
        </dd>
        <dt>Took</dt>
        <dd>{span(report.durationMs)}</dd>
        <dt>Again</dt>
        <dd>
          <code>
            <Text value={report.command} most={500} />
          </code>{" "}
          <Copy text={report.command} what="the command" />
        </dd>
      </dl>
      {report.violations.length > 0 && (
        <ul class="plain-list lines">
          {report.violations.map((one) => (
            <li key={`${one.kind} ${one.subject} ${one.detail}`}>
              <strong class="bad">{one.kind}</strong>{" "}
              <Text value={`${one.subject}: ${one.detail}`} most={500} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
