import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobState, JobStory } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { exact, jobs, sentence, span } from "../format.ts";
import { useRole } from "../identity.ts";
import { StateBadge } from "../parts/badge.tsx";
import { because, Confirm } from "../parts/dialog.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { tell } from "../parts/toasts.tsx";
import { pathTo } from "../router.ts";
import { JobLink } from "./job-link.tsx";

type Job = JobStory["job"];
type Cause = NonNullable<JobStory["diagnosis"]>["causes"][number];

interface Props {
  readonly job: Job;
  readonly cause: Cause;
  refresh(): void;
}

/** Causes in which nothing is wrong. */
const calm: ReadonlySet<string> = new Set([
  ...["running", "publishing", "next-in-line", "due-later", "snoozed", "parents"],
]);

/** One reason why a job has not ended, in words, with what helps against it. */
export function CauseNotice({ job, cause, refresh }: Props): VNode {
  return (
    <div class={`notice ${calm.has(cause.code) ? "" : "warn"}`}>
      <div>
        <strong>{whatOf(job, cause)}</strong>
        <More job={job} cause={cause} />
      </div>
      <Help cause={cause} refresh={refresh} />
    </div>
  );
}

/** The fields depend on the code; one that a newer server left out is shown as nothing. */
function field(cause: Cause, name: string): string {
  const value = cause[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function whatOf({ attempts, name }: Job, cause: Cause): ComponentChildren {
  const of = (key: string): string => field(cause, key);
  const quoted = <Text value={of("queue")} most={80} />;
  const claimer = <Text value={of("claimer")} most={80} />;
  const when = <Time at={of("runAt") || null} />;
  switch (cause.code) {
    case "running":
      return <>It is running on {claimer}.</>;
    case "publishing":
      return <>{claimer} is publishing it, and the broker has not answered yet.</>;
    case "due-later":
      return <>It is due {when}.</>;
    case "snoozed":
      return <>Its handler snoozed it. It is due again {when}.</>;
    case "backoff":
      return (
        <>
          Attempt {of("failures")} of {attempts} failed. The next one is due {when}.
        </>
      );
    case "parents":
      return <>It waits for {jobs(Number(of("count")))} before it.</>;
    case "queue-paused":
      return <>The queue {quoted} is paused.</>;
    case "queue-concurrency":
      return (
        <>
          The queue {quoted} runs {jobs(Number(of("limit")))} at once, and {of("active")} are running.
        </>
      );
    case "queue-rate":
      return (
        <>
          The queue {quoted} starts {jobs(Number(of("limit")))} every {span(Number(of("perMs")))}. The next
          may start <Time at={of("until") || null} />.
        </>
      );
    case "next-in-line":
      return <>Nothing holds it back. It is taken when its turn comes.</>;
    case "all-slots-busy":
      return <>Every node that could run it is busy.</>;
    case "no-handler":
      return (
        <>
          No living node handles <Text value={name} most={80} />.
        </>
      );
    case "cancel-requested":
      return <>Its cancellation was requested. Its handler on {claimer} has not ended yet.</>;
    case "claimer-silent":
      return (
        <>
          Its node {claimer} has gone silent. When the lease runs out,{" "}
          {of("delivery") === "at-most-once" ? "the job is lost" : "the job runs again"}.
        </>
      );
    default:
      return <Text value={sentence(cause.what)} />;
  }
}

function More({ job, cause }: { readonly job: Job; readonly cause: Cause }): VNode | null {
  if (cause.code === "parents") return <Parents cause={cause} />;
  if (cause.code === "backoff" && job.error !== null)
    return (
      <p class="soft small">
        <Text value={`${job.error.name}: ${job.error.message}`} most={300} />
      </p>
    );
  if (cause.code === "key-concurrency") return <Holders cause={cause} />;
  if (cause.code === "running") return <Since at={field(cause, "since")} />;
  if (cause.code === "cancel-requested")
    return <p class="soft small">A handler ends early only if it obeys its signal.</p>;
  // A command of the command line is no help here: there is a button, or a link.
  if (cause.advice === null || cause.advice.includes("escapement ")) return null;
  return (
    <p class="soft small">
      <Text value={sentence(cause.advice)} />
    </p>
  );
}

function Since({ at }: { readonly at: string }): VNode | null {
  if (at === "") return null;
  return (
    <p class="soft small">
      Claimed <Time at={at} />, {exact(at)}.
    </p>
  );
}

function Parents({ cause }: { readonly cause: Cause }): VNode {
  const parents = (cause["parents"] ?? []) as readonly {
    readonly id: string;
    readonly state: JobState | null;
  }[];
  return (
    <ul class="plain-list small">
      {parents.map(({ id, state }) => (
        <li key={id} class="row">
          <JobLink id={id} isNamed={state !== null} />
          {state === null ? <span class="soft">gone</span> : <StateBadge state={state} />}
        </li>
      ))}
    </ul>
  );
}

function Holders({ cause }: { readonly cause: Cause }): VNode {
  const holders = (cause["jobs"] ?? []) as readonly string[];
  return (
    <ul class="plain-list small">
      {holders.map((id) => (
        <li key={id}>
          <JobLink id={id} />
        </li>
      ))}
    </ul>
  );
}

/** What one can do against it from here. */
function Help({ cause, refresh }: { readonly cause: Cause; refresh(): void }): VNode | null {
  const [isAsked, setAsked] = useState(false);
  const may = useRole();
  const queue = field(cause, "queue");
  if (cause.code === "queue-concurrency" || cause.code === "queue-rate")
    return (
      <a class="button" href="queues">
        See its limits
      </a>
    );
  if (cause.code === "no-handler" || cause.code === "all-slots-busy" || cause.code === "queue-not-served")
    return (
      <a class="button" href="nodes">
        See the nodes
      </a>
    );
  if (cause.code !== "queue-paused") return null;
  if (!may("operate"))
    return (
      <a class="button" href={pathTo("jobs", { queue })}>
        See the queue
      </a>
    );
  return (
    <>
      <button type="button" onClick={() => setAsked(true)}>
        Resume the queue…
      </button>
      {isAsked && <Resume queue={queue} close={() => setAsked(false)} done={refresh} />}
    </>
  );
}

interface ResumeProps {
  readonly queue: string;
  close(): void;
  done(): void;
}

function Resume({ queue, close, done }: ResumeProps): VNode {
  const turn = (what: "pause" | "resume", reason: string): Promise<unknown> =>
    request(`queues/${encodeURIComponent(queue)}/${what}`, { method: "POST", body: because(reason) });
  const run = async (reason: string): Promise<void> => {
    await turn("resume", reason);
    tell(`${queue} is running again.`, "good", async () => {
      await turn("pause", "undone");
      done();
    });
    done();
  };
  return (
    <Confirm title={`Resume ${queue}?`} action="Resume" run={run} close={close}>
      <p>All of its jobs that are due may start, not only this one.</p>
    </Confirm>
  );
}
