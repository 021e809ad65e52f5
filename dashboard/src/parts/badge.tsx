import type { VNode } from "preact";
import type { JobState } from "../api/answers.ts";

export type Tone = "good" | "busy" | "warn" | "bad" | "lost" | "quiet";

/** A state has a colour and a sign, so that it can be told without seeing colours. */
const states: Readonly<Record<JobState, { tone: Tone; sign: string }>> = {
  waiting: { tone: "quiet", sign: "◷" },
  blocked: { tone: "warn", sign: "⊘" },
  active: { tone: "busy", sign: "▶" },
  succeeded: { tone: "good", sign: "✓" },
  dead: { tone: "bad", sign: "✕" },
  lost: { tone: "lost", sign: "?" },
  cancelled: { tone: "quiet", sign: "–" },
};

export function StateBadge({ state }: { readonly state: JobState }): VNode {
  const { tone, sign } = states[state];
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{sign}</span>
      {state}
    </span>
  );
}

export function Badge({
  tone = "quiet",
  children,
}: {
  readonly tone?: Tone;
  readonly children: string;
}): VNode {
  return <span class={`badge ${tone}`}>{children}</span>;
}
