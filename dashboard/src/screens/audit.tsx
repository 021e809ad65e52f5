import type { VNode } from "preact";
import type { AuditPage } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { count, span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { jobPath, pathTo, usePlace } from "../router.ts";
import { schedulePath } from "./schedule-rule.ts";

const words = ["actor", "action", "target"] as const;

export function Audit(): VNode {
  const { query } = usePlace();
  const cursor = query.get("cursor");
  const filter = Object.fromEntries(words.map((word) => [word, query.get(word)]));
  const page = useQuery<AuditPage>("audit", { ...filter, cursor }, { everyMs: cursor === null ? 5_000 : 0 });
  const given = words.filter((word) => query.get(word) !== null);
  return (
    <>
      <div class="page-head">
        <h1>Audit</h1>
      </div>
      {given.length > 0 && (
        <div class="row small">
          {given.map((word) => (
            <a key={word} class="chip" href={pathTo("audit", { ...filter, [word]: null })}>
              {word}: <Text value={query.get(word) ?? ""} most={60} /> ✕
            </a>
          ))}
        </div>
      )}
      <Answer of={page}>
        {({ entries, cursor: next }) =>
          entries.length === 0 ? (
            <Empty title={given.length > 0 ? "Nothing matches" : "No changes yet"}>
              <span>
                Everything people do here, by the API or on the command line, is recorded with who and why.
              </span>
            </Empty>
          ) : (
            <>
              <Entries entries={entries} />
              <nav class="row small" aria-label="Pages">
                {cursor !== null && (
                  <a class="button" href={pathTo("audit", filter)}>
                    Newest
                  </a>
                )}
                {next !== null && (
                  <a class="button" href={pathTo("audit", { ...filter, cursor: next })}>
                    Older
                  </a>
                )}
              </nav>
            </>
          )
        }
      </Answer>
    </>
  );
}

function Entries({ entries }: { readonly entries: AuditPage["entries"] }): VNode {
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">To what</th>
            <th scope="col">Why</th>
            <th scope="col">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id} data-row>
              <td data-label="When">
                <Time at={entry.at} />
              </td>
              <td data-label="Who">
                <a href={pathTo("audit", { actor: entry.actor })}>
                  <Text value={entry.actor} most={40} />
                </a>
              </td>
              <td data-label="What">
                <a href={pathTo("audit", { action: entry.action })}>{entry.action}</a>
              </td>
              <td class="wide mono" data-label="To what">
                <Target target={entry.target} />
              </td>
              <td class="wide" data-label="Why">
                {entry.reason === null ? (
                  <span class="soft">–</span>
                ) : (
                  <Text value={entry.reason} most={300} />
                )}
              </td>
              <td class="wide small" data-label="Outcome">
                <Outcome outcome={entry.outcome} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Target({ target }: { readonly target: string }): VNode {
  const text = <Text value={target} most={80} />;
  if (target.startsWith("job:")) return <a href={jobPath(target.slice(4))}>{text}</a>;
  if (target.startsWith("queue:")) return <a href={pathTo("jobs", { queue: target.slice(6) })}>{text}</a>;
  if (target.startsWith("schedule:")) return <a href={schedulePath(target.slice(9))}>{text}</a>;
  return text;
}

function Outcome({ outcome }: { readonly outcome?: unknown }): VNode {
  if (outcome === null || outcome === undefined)
    return <span class="soft">not known: in progress, or its process was killed</span>;
  if (typeof outcome !== "object") return <Text value={String(outcome)} most={120} />;
  if ("outcome" in outcome) return <Text value={receiptText(outcome)} most={120} />;
  const parts = Object.entries(outcome).flatMap(([name, value]) => wordsFor(name, value));
  return <Text value={parts.length === 0 ? "done" : parts.join(", ")} most={160} />;
}

/** The job that was added is the target already; another one that stands for it is not. */
function receiptText({ outcome, id }: { readonly outcome?: unknown; readonly id?: unknown }): string {
  return outcome === "added" || id === undefined ? String(outcome) : `${String(outcome)}: ${String(id)}`;
}

/** `3 redriven`, `paused`, `concurrency 5`; nothing if nothing is set. */
function wordsFor(name: string, value: unknown): string[] {
  if (value === null || value === 0) return [];
  if (name === "paused") return [value === true ? "paused" : "running"];
  if (name === "rate") {
    const { limit = 0, perMs = 0 } = value as { readonly limit?: number; readonly perMs?: number };
    return [`${count(limit)} per ${span(perMs)}`];
  }
  if (name === "concurrency") return [`${String(value)} at once`];
  if (typeof value === "number") return [`${count(value)} ${name}`];
  return [`${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`];
}
