import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Children, JobStory } from "../api/answers.ts";
import { isUnknown } from "../api/request.ts";
import { useQuery } from "../api/use-query.ts";
import { span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { StateBadge } from "../parts/badge.tsx";
import { Copy } from "../parts/copy.tsx";
import { NotFound } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time, useNow } from "../parts/time.tsx";
import { Tree } from "../parts/tree.tsx";
import { jobPath, pathTo } from "../router.ts";
import { endedStates } from "./filter.ts";
import { JobControls } from "./job-controls.tsx";
import { JobLink } from "./job-link.tsx";
import { shareOf } from "./job-progress.ts";
import { Timeline } from "./job-timeline.tsx";
import { Why } from "./job-why.tsx";
import { schedulePath } from "./schedule-rule.ts";

type Job = JobStory["job"];

/** An ended job changes only by a redrive or a delete, and may be large. */
const everyMs = { ended: 60_000, other: 2_000 } as const;
const mostNamed = 10;

export function JobScreen({ id }: { readonly id: string }): VNode {
  const [hasEnded, setEnded] = useState(false);
  const story = useQuery<JobStory>(jobPath(id), {}, { everyMs: hasEnded ? everyMs.ended : everyMs.other });
  const state = story.data?.job.state;
  useEffect(() => setEnded(state !== undefined && endedStates.includes(state)), [state]);
  if (story.data === null && story.error !== null && isUnknown(story.error)) return <Unknown id={id} />;
  return (
    <Answer of={story}>
      {({ job, trail, diagnosis }) => (
        <>
          <div class="page-head">
            <div class="title">
              <p class="small">
                <a href={pathTo("jobs", { name: job.name })}>Jobs of this name</a>
              </p>
              <h1 class="row">
                <Text value={job.name} /> <StateBadge state={job.state} />
              </h1>
              <p class="mono soft small">
                <Text value={job.id} /> <Copy text={job.id} what="the id" />
              </p>
            </div>
          </div>
          <JobControls job={job} refresh={story.refresh} />
          <Why job={job} diagnosis={diagnosis} refresh={story.refresh} />
          <ProgressBar job={job} />
          <div class="columns">
            <section class="panel stack" aria-labelledby="facts">
              <h2 id="facts">What it is</h2>
              <Facts job={job} />
            </section>
            <Data job={job} />
          </div>
          <Family job={job} />
          <section class="panel stack" aria-labelledby="timeline">
            <h2 id="timeline">What happened</h2>
            <Timeline job={job} trail={trail} />
          </section>
        </>
      )}
    </Answer>
  );
}

function Unknown({ id }: { readonly id: string }): VNode {
  return (
    <NotFound heading="No such job" title="There is no job with this id" id={id}>
      <span>It was never enqueued, or it ended so long ago that it is no longer kept.</span>
      <a href="jobs">To all jobs</a>
    </NotFound>
  );
}

/** A bar where the progress is a share, or so many of so many. */
function ProgressBar({ job: { progress, state } }: { readonly job: Job }): VNode | null {
  const share = state === "active" ? shareOf(progress) : null;
  if (share === null) return null;
  return (
    <div>
      <progress max={1} value={share} aria-label="Progress of the job" />
      <p class="small soft">{Math.round(share * 100)} %</p>
    </div>
  );
}

function Data({ job }: { readonly job: Job }): VNode {
  return (
    <section class="panel stack" aria-labelledby="input">
      <h2 id="input">
        Input <Copy text={JSON.stringify(job.input, null, 2) ?? ""} what="the input" />
      </h2>
      <Tree value={job.input} />
      {job.progress !== null && (
        <>
          <h3>Progress</h3>
          <Tree value={job.progress} />
        </>
      )}
      {job.state === "succeeded" && (
        <>
          <h3>Result</h3>
          <Tree value={job.result} />
        </>
      )}
      {job.unreadable !== undefined && <p class="notice bad">Cannot be read: {job.unreadable.join(", ")}</p>}
    </section>
  );
}

function Facts({ job }: { readonly job: Job }): VNode {
  const now = useNow();
  const rows: (readonly [string, ComponentChildren])[] = [
    ["Delivery", job.delivery],
    [
      "Queue",
      <a href={pathTo("jobs", { queue: job.queue })}>
        <Text value={job.queue} />
      </a>,
    ],
    ["Attempt", attemptsOf(job)],
    ["Crashes", crashesOf(job)],
    ["Rollbacks", job.rollbacks === 0 ? null : job.rollbacks],
    ["Redrives", job.redrives === 0 ? null : job.redrives],
    ["Priority", job.priority === 0 ? null : job.priority],
    ["Tags", job.tags.length === 0 ? null : <Tags tags={job.tags} />],
    ["Schedule", job.schedule === null ? null : <ScheduleLink name={job.schedule} />],
    ["Dispatch", job.relayed ? "published by a relay" : null],
    ["Concurrency key", job.concurrencyKey === null ? null : <Text value={job.concurrencyKey} />],
    ["Rate key", job.rateKey === null ? null : <Text value={job.rateKey} />],
    ["Enqueued", <Time at={job.enqueuedAt} />],
    ["Due", <Time at={job.runAt} />],
    ["Claimed", job.claimedAt === null ? null : <Time at={job.claimedAt} />],
    [
      "By",
      job.claimer === null ? null : (
        <>
          <Text value={job.claimer} />, token {job.token}
        </>
      ),
    ],
    ["Ended", job.finishedAt === null ? null : <Time at={job.finishedAt} />],
    [job.finishedAt === null ? "Running for" : "Ran for", ranFor(job, now)],
    ["Expires", job.expireAt === null ? null : <Time at={job.expireAt} />],
    ["Trace", job.trace === undefined ? null : <code>{job.trace.traceparent}</code>],
  ];
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null)
        .map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    </dl>
  );
}

/** At-most-once is never tried again by itself. */
function attemptsOf({ attempt, attempts, delivery }: Job): string {
  return delivery === "at-most-once"
    ? `${attempt} of ${Math.max(1, attempt)}, and never again by itself`
    : `${attempt} of ${attempts}`;
}

/** At-most-once is lost by its first crash. */
function crashesOf({ crashes, maxCrashes, delivery }: Job): string | null {
  if (crashes === 0) return null;
  return delivery === "at-most-once" ? `${crashes}` : `${crashes}; dead at ${maxCrashes}`;
}

function Tags({ tags }: { readonly tags: readonly string[] }): VNode {
  return (
    <span class="row">
      {tags.map((tag) => (
        <a key={tag} class="chip" href={pathTo("jobs", { tag })}>
          <Text value={tag} most={60} />
        </a>
      ))}
    </span>
  );
}

function ScheduleLink({ name }: { readonly name: string }): VNode {
  return (
    <a href={schedulePath(name)}>
      <Text value={name} />
    </a>
  );
}

function ranFor({ claimedAt, finishedAt, state }: Job, now: number): string | null {
  // How long a lost one ran is unknown.
  if (claimedAt === null || state === "lost" || (finishedAt === null && state !== "active")) return null;
  return span(Math.max(0, (finishedAt === null ? now : Date.parse(finishedAt)) - Date.parse(claimedAt)));
}

/** What it waits for, and what waits for it: both end with it. */
function Family({ job }: { readonly job: Job }): VNode | null {
  const hasEnded = endedStates.includes(job.state);
  const answer = useQuery<Children>(hasEnded ? null : `${jobPath(job.id)}/children`, {}, { everyMs: 15_000 });
  const children = hasEnded ? [] : (answer.data?.children ?? []);
  if (job.waitsFor.length === 0 && children.length === 0) return null;
  return (
    <section class="panel stack" aria-labelledby="family">
      <h2 id="family">Before and after it</h2>
      <dl class="facts">
        {job.waitsFor.length > 0 && (
          <>
            <dt>{hasEnded ? "Waited for" : "Waits for"}</dt>
            <dd>
              <ul class="plain-list">
                {job.waitsFor.map((id, place) => (
                  <li key={id}>
                    <JobLink id={id} isNamed={place < mostNamed} />
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
        {children.length > 0 && (
          <>
            <dt>Waiting for it</dt>
            <dd>
              <ul class="plain-list">
                {children.map(({ id, name, state }) => (
                  <li key={id} class="row">
                    <JobLink id={id} name={name} />
                    <StateBadge state={state} />
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
      </dl>
      {answer.data?.isPartial === true && (
        <p class="small soft">
          Only the newest 500 blocked jobs were looked at; others may wait for it, too.
        </p>
      )}
    </section>
  );
}
