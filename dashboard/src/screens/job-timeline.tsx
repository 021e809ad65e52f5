import type { VNode } from "preact";
import type { JobStory } from "../api/answers.ts";
import { dayAndTime, exact } from "../format.ts";
import type { Tone } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";

type Job = JobStory["job"];

interface Line {
  readonly at: string;
  readonly what: string;
  readonly tone: Tone;
  /** Who, and under which token. */
  readonly who: string | null;
  readonly text: string | null;
  readonly stack: string | null;
}

const tones: Readonly<Record<string, Tone>> = {
  failed: "bad",
  crashed: "lost",
  "rolled-back": "warn",
  redriven: "busy",
  updated: "busy",
  "cancel-requested": "warn",
  "result-not-kept": "warn",
};

const ends: Readonly<Record<string, Tone>> = { succeeded: "good", lost: "lost", dead: "bad" };

/** All that is known of it, the oldest first. */
function linesOf(job: Job, trail: JobStory["trail"]): Line[] {
  const line = (
    at: string | null,
    what: string,
    tone: Tone,
    who: string | null,
    text: string | null,
  ): Line[] => (at === null ? [] : [{ at, what, tone, who, text, stack: null }]);
  const by = (claimer: string | null, token: number): string | null =>
    claimer === null ? null : `${claimer}, token ${token}`;
  const lines = [
    ...line(job.enqueuedAt, "enqueued", "quiet", null, null),
    ...trail.map(
      (entry): Line => ({
        at: entry.at,
        what:
          entry.kind === "log" || entry.kind === "noted"
            ? entry.kind
            : `${entry.kind}, attempt ${entry.attempt}`,
        tone: tones[entry.kind] ?? "quiet",
        who: by(entry.claimer, entry.token),
        text: [entry.error?.message, entry.text].filter((part) => part != null).join(" · ") || null,
        stack: entry.error?.stack ?? null,
      }),
    ),
    ...line(job.claimedAt, `claimed, attempt ${job.attempt}`, "busy", by(job.claimer, job.token), null),
    ...line(job.finishedAt, job.state, ends[job.state] ?? "quiet", null, job.reason),
  ];
  // Sorting is stable: at the same millisecond the order above holds.
  return lines.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

export function Timeline({ job, trail }: { readonly job: Job; readonly trail: JobStory["trail"] }): VNode {
  return (
    <ol class="timeline">
      {linesOf(job, trail).map((one, place) => (
        <li key={place}>
          <time class="soft mono small" dateTime={one.at} title={exact(one.at)}>
            {dayAndTime(one.at)}
          </time>
          <div>
            <span class={`badge ${one.tone}`}>{one.what}</span>{" "}
            {one.who !== null && (
              <span class="soft small mono">
                <Text value={one.who} />
              </span>
            )}
            {one.text !== null && (
              <p class="said small">
                <Text value={one.text} keepsLines />
              </p>
            )}
            {one.stack !== null && (
              <details>
                <summary class="small soft">Stack</summary>
                <pre class="block">
                  <Text value={one.stack} keepsLines />
                </pre>
              </details>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}
