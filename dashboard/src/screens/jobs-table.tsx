import type { VNode } from "preact";
import type { JobSummary } from "../api/answers.ts";
import { useMay } from "../identity.ts";
import { StateBadge } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { visible } from "../parts/visible.ts";
import { jobPath } from "../router.ts";
import type { Row } from "./live-page.ts";

interface Props {
  readonly rows: readonly Row[];
  readonly selected: ReadonlyMap<string, JobSummary>;
  select(jobs: ReadonlyMap<string, JobSummary>): void;
}

export function JobTable({ rows, selected, select }: Props): VNode {
  const maySelect = useMay("operate");
  const toggle = (job: JobSummary): void => {
    const next = new Map(selected);
    if (!next.delete(job.id)) next.set(job.id, job);
    select(next);
  };
  const isWhole = rows.every(({ job }) => selected.has(job.id));
  const whole = (): void => select(new Map(isWhole ? [] : rows.map(({ job }) => [job.id, job])));
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            {maySelect && (
              <th class="check">
                <input type="checkbox" aria-label="Select this page" checked={isWhole} onChange={whole} />
              </th>
            )}
            <th scope="col">State</th>
            <th scope="col">Name</th>
            <th scope="col">Id</th>
            <th scope="col">Queue</th>
            <th scope="col" class="number">
              Attempt
            </th>
            <th scope="col">When</th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ job, isGone }) => (
            <tr key={job.id} data-row class={isGone ? "gone" : ""} data-selected={selected.has(job.id)}>
              {maySelect && (
                <td class="check">
                  <input
                    type="checkbox"
                    aria-label={`Select ${visible(job.id)}`}
                    checked={selected.has(job.id)}
                    onChange={() => toggle(job)}
                  />
                </td>
              )}
              <JobCells job={job} isGone={isGone} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function JobCells({ job, isGone }: { readonly job: JobSummary; readonly isGone: boolean }): VNode {
  const when = job.finishedAt ?? (job.state === "active" ? job.claimedAt : null) ?? job.runAt;
  const happened = job.error?.message ?? job.reason ?? "";
  return (
    <>
      <td>
        <StateBadge state={job.state} />
      </td>
      <td class="name">
        <Text value={job.name} most={48} />
      </td>
      <td class="mono">
        <a href={jobPath(job.id)} title={visible(job.id)}>
          <Text value={shortId(job.id)} most={32} />
        </a>
      </td>
      <td data-label="Queue">
        <Text value={job.queue} most={32} />
      </td>
      <td class="number" data-label="Attempt">
        {job.attempt}/{job.attempts}
      </td>
      <td data-label="When">
        <Time at={when} />
      </td>
      <td class="wide soft">
        {isGone ? "Changed since; it no longer matches." : <Text value={happened} most={160} />}
      </td>
    </>
  );
}

/** Of an id that the library made, the end tells more than the beginning. */
function shortId(id: string): string {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id) ? `…${id.slice(-8)}` : id;
}
