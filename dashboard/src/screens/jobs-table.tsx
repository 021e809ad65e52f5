import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { JobSummary } from "../api/answers.ts";
import { count } from "../format.ts";
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
  const body = useRef<HTMLTableSectionElement>(null);
  // Beside its link, which the keyboard has: a row is a large place to click on, and no control of its own.
  useEffect(() => body.current?.addEventListener("click", openRow), []);
  const toggle = (job: JobSummary): void => {
    const next = new Map(selected);
    if (!next.delete(job.id)) next.set(job.id, job);
    select(next);
  };
  const isWhole = rows.every(({ job }) => selected.has(job.id));
  const whole = (): void => select(new Map(isWhole ? [] : rows.map(({ job }) => [job.id, job])));
  return (
    <div class="table-wrap keeps-head">
      <table class="cards list">
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
        <tbody ref={body}>
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

/** A click on a row is one on its link, with the keys that were held; one that marks text is none. */
function openRow(event: MouseEvent): void {
  const { target } = event;
  if (!(target instanceof Element) || target.closest("a, button, input, .check") !== null) return;
  if (getSelection()?.isCollapsed === false) return;
  const link = target.closest("tr")?.querySelector("a");
  link?.focus();
  link?.dispatchEvent(new MouseEvent("click", event));
}

function JobCells({ job, isGone }: { readonly job: JobSummary; readonly isGone: boolean }): VNode {
  const { word, at } = whenOf(job);
  return (
    <>
      <td>
        <StateBadge state={job.state} />
      </td>
      <td class="name">
        <Text value={job.name} most={48} />
      </td>
      <td class="mono id">
        <a href={jobPath(job.id)} title={visible(job.id)}>
          <Text value={shortId(job.id)} />
        </a>
      </td>
      <td data-label="Queue">
        <Text value={job.queue} most={32} />
      </td>
      <td class="number" data-label="Attempt">
        {`${job.attempt}/${attemptsOf(job)}`}
      </td>
      <td data-label="When">
        <span class="soft">{word}</span> <Time at={at} />
      </td>
      <td class="wide">
        {isGone ? <span class="soft">Changed since; it no longer matches.</span> : <Happened job={job} />}
      </td>
    </>
  );
}

/** The time that matters in its state, and what it is the time of. */
function whenOf(job: JobSummary): { readonly word: string; readonly at: string } {
  if (job.finishedAt !== null) return { word: "ended", at: job.finishedAt };
  if (job.state === "active" && job.claimedAt !== null) return { word: "started", at: job.claimedAt };
  if (job.state === "blocked") return { word: "enqueued", at: job.enqueuedAt };
  return { word: "due", at: job.runAt };
}

/** At-most-once has one, whatever its retries would be. */
function attemptsOf({ delivery, attempt, attempts }: JobSummary): number {
  return delivery === "at-most-once" ? Math.max(1, attempt) : attempts;
}

/** A failure stands out only if it is how the job stands now. */
function Happened({ job: { state, attempt, error, reason } }: { readonly job: JobSummary }): VNode | null {
  const retries = attempt - 1;
  if (state === "succeeded" && error !== null)
    return (
      <span class="soft">
        {retries < 1 ? "after an error" : retries === 1 ? "after 1 retry" : `after ${count(retries)} retries`}
      </span>
    );
  const text = error?.message ?? reason ?? "";
  if (text === "") return null;
  const isOver = state === "dead" || state === "lost";
  return (
    <span class={isOver ? "" : "soft"}>
      {state === "active" && error !== null && "retried after: "}
      <Text value={text} most={160} />
    </span>
  );
}

const longestId = 40;

/** Of an id that the library made, the end tells more than the beginning; of a long one, both ends do. */
function shortId(id: string): string {
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id)) return `…${id.slice(-8)}`;
  const characters = [...id];
  if (characters.length <= longestId) return id;
  return `${characters.slice(0, 15).join("")}…${characters.slice(-24).join("")}`;
}
