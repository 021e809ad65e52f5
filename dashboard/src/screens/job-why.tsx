import type { ComponentChildren, VNode } from "preact";
import type { JobStory } from "../api/answers.ts";
import { dayAndTime, exact, sentence, span } from "../format.ts";
import { Text } from "../parts/text.tsx";
import { CauseNotice } from "./job-cause.tsx";

type Job = JobStory["job"];

interface Props {
  readonly job: Job;
  readonly diagnosis: JobStory["diagnosis"];
  refresh(): void;
}

/** Why it is where it is, in words, and what can be done about it. */
export function Why({ job, diagnosis, refresh }: Props): VNode | null {
  const causes = diagnosis?.causes ?? [];
  if (causes.length > 0)
    return (
      <section class="stack" aria-label="Why it is where it is">
        {causes.map((cause) => (
          <CauseNotice key={cause.code} job={job} cause={cause} refresh={refresh} />
        ))}
      </section>
    );
  if (job.state === "lost") return <Lost job={job} />;
  if (job.state === "dead") return <Dead job={job} />;
  if (job.reason === null || job.state === "succeeded") return null;
  return (
    <Notice tone="">
      <Text value={sentence(job.reason)} />
    </Notice>
  );
}

function Notice({ tone, children }: { readonly tone: string; readonly children: ComponentChildren }): VNode {
  return (
    <section class={`notice ${tone}`} aria-label="Why it is where it is">
      <div class="stack tight">{children}</div>
    </section>
  );
}

function Lost({ job: { claimer, claimedAt, finishedAt, reason } }: { readonly job: Job }): VNode {
  const silentFor =
    claimedAt === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(claimedAt);
  return (
    <Notice tone="lost">
      <strong>Whether it was done is unknown.</strong>
      <p>
        {claimer !== null && claimedAt !== null && (
          <>
            <Text value={claimer} most={80} /> claimed it at{" "}
            <time dateTime={claimedAt} title={exact(claimedAt)}>
              {dayAndTime(claimedAt)}
            </time>
            {reason === "its lease ran out" && silentFor !== null
              ? ` and went silent; its lease ran out ${span(silentFor)} later. `
              : ". "}
          </>
        )}
        {reason !== null && reason !== "its lease ran out" && (
          <>
            <Text value={sentence(reason)} />{" "}
          </>
        )}
        Its work may have been done, or not.
      </p>
      <p>
        It is at-most-once, so it is never run again by itself. Check outside before you redrive it: a redrive
        may do it a second time.
      </p>
    </Notice>
  );
}

function Dead({ job }: { readonly job: Job }): VNode {
  const { error } = job;
  return (
    <Notice tone="bad">
      {error !== null && (
        <strong>
          <Text value={`${error.name}: ${error.message}`} most={600} />
        </strong>
      )}
      <p>{whyDead(job)}</p>
    </Notice>
  );
}

function whyDead({ reason, attempt, delivery, crashes }: Job): ComponentChildren {
  const next = "Once the cause is fixed, a redrive gives it fresh attempts.";
  if (delivery === "at-most-once")
    return "Its handler failed. It is at-most-once, so it was not retried: check what the attempt did before you redrive it.";
  if (reason === "unrecoverable")
    return `Its handler threw an UnrecoverableError: a retry would not help, so there was none. ${next}`;
  if (reason?.startsWith("attempts used up") === true)
    return `${attempt === 1 ? "Its only attempt" : `All of its ${attempt} attempts`} failed. ${next}`;
  if (reason?.startsWith("poison") === true)
    return `Its node died or went silent ${crashes} times while it ran, so it does not run again: it may be what kills them. ${next}`;
  return (
    <>
      {reason !== null && (
        <>
          <Text value={sentence(reason)} />{" "}
        </>
      )}
      {next}
    </>
  );
}
