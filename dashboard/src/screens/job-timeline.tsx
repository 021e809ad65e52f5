import type { VNode } from "preact";
import type { JobStory } from "../api/answers.ts";
import { dayAndTime, exact, span } from "../format.ts";
import type { Tone } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { useNow } from "../parts/time.tsx";
import { type Attempt, type Event, type Step, stepsOf, tookMs } from "./job-attempts.ts";

type Job = JobStory["job"];

const looks: Readonly<
  Record<string, { readonly tone: Tone; readonly sign: string; readonly word?: string }>
> = {
  succeeded: { tone: "good", sign: "✓" },
  failed: { tone: "bad", sign: "✕" },
  dead: { tone: "bad", sign: "✕" },
  crashed: { tone: "lost", sign: "?", word: "went silent" },
  lost: { tone: "lost", sign: "?" },
  snoozed: { tone: "quiet", sign: "◷" },
  "rolled-back": { tone: "warn", sign: "↩", word: "rolled back" },
  redriven: { tone: "busy", sign: "↻" },
  updated: { tone: "busy", sign: "✎", word: "edited" },
  running: { tone: "busy", sign: "▶" },
  "cancel-requested": { tone: "warn", sign: "⊘", word: "cancel requested" },
  "result-not-kept": { tone: "warn", sign: "!", word: "result not kept" },
};

function Mark({ what }: { readonly what: string }): VNode {
  const { tone, sign, word } = looks[what] ?? { tone: "quiet", sign: "", word: what };
  return <span class={`badge ${tone}`}>{`${sign} ${word ?? what}`.trim()}</span>;
}

function At({ at }: { readonly at: string }): VNode {
  return (
    <time class="soft mono small" dateTime={at} title={exact(at)}>
      {dayAndTime(at)}
    </time>
  );
}

/** What happened, as one block for each attempt and a line for what was between them. */
export function Timeline({ job, trail }: { readonly job: Job; readonly trail: JobStory["trail"] }): VNode {
  const steps = stepsOf(job, trail);
  // A success needs no stack; whatever else there is begins with it.
  const lastFailed =
    job.state === "succeeded"
      ? undefined
      : steps.findLast((step) => step.kind === "attempt" && step.end?.error?.stack !== undefined);
  return (
    <ol class="timeline">
      {steps.map((step, place) =>
        step.kind === "event" ? (
          <EventLine key={step.key} event={step} />
        ) : (
          <AttemptBlock
            key={step.key}
            job={job}
            step={step}
            before={steps[place - 1]}
            isOpen={step === lastFailed}
          />
        ),
      )}
    </ol>
  );
}

function EventLine({ event: { at, what, who, text } }: { readonly event: Event }): VNode {
  return (
    <li>
      <At at={at} />
      <div>
        <Mark what={what} />{" "}
        {what === "redriven" || what === "updated" || who === null ? null : (
          <span class="soft small mono">
            <Text value={who} />
          </span>
        )}
        {text !== null && (
          <span class="small">
            <Text value={text} keepsLines />
          </span>
        )}
      </div>
    </li>
  );
}

interface BlockProps {
  readonly job: Job;
  readonly step: Attempt;
  readonly before: Step | undefined;
  /** Whether its stack is shown at once. */
  readonly isOpen: boolean;
}

function AttemptBlock({ job, step, before, isOpen }: BlockProps): VNode {
  const { attempt, token, claimer, claimedAt, end, lines } = step;
  const isRunning = end === null && job.state === "active";
  const at = claimedAt ?? end?.at ?? lines[0]?.at ?? job.enqueuedAt;
  return (
    <li>
      <At at={at} />
      <section class="attempt stack" aria-label={`Attempt ${attempt}`}>
        <p class="row">
          <strong>Attempt {attempt}</strong>{" "}
          <Mark what={end?.what ?? (isRunning ? "running" : "given back")} />
          <span class="small">
            <Took step={step} before={before} />
          </span>
        </p>
        <p class="soft small mono">
          {claimer !== null && <Text value={claimer} />}
          {claimer !== null && ", "}token {token}
        </p>
        {end?.error != null && (
          <p class="said">
            <Text value={`${end.error.name}: ${end.error.message}`} keepsLines />
          </p>
        )}
        {end?.text != null && end.text !== job.reason && (
          <p class="small soft">
            <Text value={end.text} keepsLines />
          </p>
        )}
        {lines.length > 0 && (
          <ul class="plain-list small">
            {lines.map((line, place) => (
              <li key={place} class="row">
                <At at={line.at} />
                {line.kind !== "log" && <Mark what={line.kind} />}
                <span>
                  <Text value={line.text ?? line.error?.message ?? ""} keepsLines />
                </span>
              </li>
            ))}
          </ul>
        )}
        {end?.error?.stack !== undefined && (
          <details open={isOpen}>
            <summary class="small soft">Stack</summary>
            <pre class="block">
              <Text value={end.error.stack} keepsLines />
            </pre>
          </details>
        )}
      </section>
    </li>
  );
}

/** How long it ran; of an attempt whose claim is no longer known, how long after the step before it ended. */
function Took({ step, before }: { readonly step: Attempt; readonly before: Step | undefined }): VNode | null {
  const now = useNow();
  const took = tookMs(step, now);
  if (took !== null && step.end === null) return <>{`for ${span(took)} so far`}</>;
  if (took !== null) return <>{`${step.end?.what === "crashed" ? "noticed " : ""}after ${span(took)}`}</>;
  const since = before === undefined ? null : before.kind === "event" ? before.at : before.end?.at;
  if (since == null || step.end === null) return null;
  const waited = span(Math.max(0, Date.parse(step.end.at) - Date.parse(since)));
  return (
    <>{`${waited} after ${before?.kind === "event" ? `it was ${before.what}` : "the attempt before it"}`}</>
  );
}
