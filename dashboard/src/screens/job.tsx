import type { ComponentChildren, VNode } from "preact";
import type { Children, JobStory } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { capital, sentence, span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { StateBadge } from "../parts/badge.tsx";
import { Copy } from "../parts/copy.tsx";
import { Text } from "../parts/text.tsx";
import { Time, useNow } from "../parts/time.tsx";
import { Tree } from "../parts/tree.tsx";
import { jobPath, pathTo } from "../router.ts";
import { endedStates } from "./filter.ts";
import { JobControls } from "./job-controls.tsx";
import { Timeline } from "./job-timeline.tsx";
import { schedulePath } from "./schedules.tsx";

type Job = JobStory["job"];

export function JobScreen({ id }: { readonly id: string }): VNode {
  const story = useQuery<JobStory>(jobPath(id), {}, { everyMs: 2_000 });
  return (
    <Answer of={story}>
      {({ job, trail, diagnosis }) => (
        <>
          <div class="page-head">
            <div class="title">
              <h1>
                <Text value={job.name} />
              </h1>
              <p class="mono soft small">
                <Text value={job.id} /> <Copy text={job.id} what="the id" />
              </p>
            </div>
            <StateBadge state={job.state} />
          </div>
          <JobControls job={job} refresh={story.refresh} />
          <Why job={job} diagnosis={diagnosis} />
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

/** Why it is where it is, in words, and what can be done about it. */
function Why({
  job,
  diagnosis,
}: {
  readonly job: Job;
  readonly diagnosis: JobStory["diagnosis"];
}): VNode | null {
  const causes = diagnosis?.causes ?? [];
  const { reason, error, state } = job;
  if (causes.length > 0)
    return (
      <section class="stack" aria-label="Why it is where it is">
        {causes.map((cause) => (
          <div key={cause.code} class="notice warn">
            <div>
              <strong>
                <Text value={sentence(cause.what)} />
              </strong>
              {cause.advice !== null && (
                <p class="soft small">
                  <Text value={capital(cause.advice)} />
                </p>
              )}
            </div>
          </div>
        ))}
      </section>
    );
  if (reason === null || state === "succeeded") return null;
  const tone = state === "lost" ? "lost" : state === "dead" ? "bad" : "";
  return (
    <section class={`notice ${tone}`} aria-label="Why it is where it is">
      <div>
        {error !== null && (
          <strong>
            <Text value={`${error.name}: ${error.message}`} most={600} />
          </strong>
        )}
        <p class={error === null ? "" : "soft"}>
          <Text value={sentence(reason)} />
        </p>
      </div>
    </section>
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

function shareOf(progress: unknown): number | null {
  if (typeof progress === "number") return progress < 0 ? null : progress <= 1 ? progress : progress / 100;
  if (typeof progress !== "object" || progress === null) return null;
  const { done, total } = progress as { readonly done?: unknown; readonly total?: unknown };
  return typeof done === "number" && typeof total === "number" && total > 0 ? done / total : null;
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
    ["Attempt", `${job.attempt} of ${job.attempts}`],
    ["Crashes", job.crashes === 0 ? null : `${job.crashes}; dead at ${job.maxCrashes}`],
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
  if (claimedAt === null || (finishedAt === null && state !== "active")) return null;
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
        {job.waitsFor.length > 0 && <dt>Waits for</dt>}
        {job.waitsFor.length > 0 && <Ids ids={job.waitsFor} />}
        {children.length > 0 && <dt>Waiting for it</dt>}
        {children.length > 0 && <Ids ids={children.map(({ id }) => id)} />}
      </dl>
      {answer.data?.isPartial === true && (
        <p class="small soft">
          Only the newest 500 blocked jobs were looked at; others may wait for it, too.
        </p>
      )}
    </section>
  );
}

function Ids({ ids }: { readonly ids: readonly string[] }): VNode {
  return (
    <dd>
      <ul class="plain-list mono">
        {ids.map((id) => (
          <li key={id}>
            <a href={jobPath(id)}>
              <Text value={id} />
            </a>
          </li>
        ))}
      </ul>
    </dd>
  );
}
