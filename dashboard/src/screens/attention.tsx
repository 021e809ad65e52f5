import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobSummary, JobsPage, Overview, Partitions, Queue } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { useRole } from "../identity.ts";
import { Copy } from "../parts/copy.tsx";
import { Text } from "../parts/text.tsx";
import { ActOnJobs, type Target } from "./act-on-jobs.tsx";
import { type Finding, findingsOf } from "./findings.ts";
import { LimitQueue, PauseQueue } from "./queue-actions.tsx";

type Asked =
  | { readonly what: "redrive" | "cancel"; readonly target: Target }
  | { readonly what: "resume" | "limit"; readonly queue: Queue }
  | null;

interface Props {
  readonly seen: Overview;
  refresh(): void;
}

/** What needs attention, the worst first, each with what can be done about it. */
export function Attention({ seen, refresh }: Props): VNode {
  const partitions = useQuery<Partitions>("partitions", {}, { everyMs: 15_000 });
  const oldest = { state: "active", order: "oldest", limit: 50 };
  const active = useQuery<JobsPage>("jobs", oldest, { everyMs: 15_000 });
  const [asked, setAsked] = useState<Asked>(null);
  const running: readonly JobSummary[] = active.data?.jobs ?? [];
  const findings = findingsOf({ seen, partitions: partitions.data, running });
  const close = (): void => setAsked(null);
  return (
    <section class="stack tight" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {findings.length === 0 && (
        <div class="notice good">✓ Nothing. All queues keep up, nothing is dead or lost.</div>
      )}
      {findings.map((finding) => (
        <Notice key={finding.key} finding={finding} ask={setAsked} />
      ))}
      {asked !== null && "target" in asked && (
        <ActOnJobs action={asked.what} target={asked.target} close={close} done={refresh} />
      )}
      {asked?.what === "resume" && (
        <PauseQueue queue={asked.queue} what="resume" close={close} done={refresh} />
      )}
      {asked?.what === "limit" && <LimitQueue queue={asked.queue} close={close} done={refresh} />}
    </section>
  );
}

function Notice({ finding, ask }: { readonly finding: Finding; ask(asked: Asked): void }): VNode {
  const may = useRole();
  const { tone, text, path, link, start, redrive, cancel, resume, limit } = finding;
  return (
    <div class={`notice ${tone}`}>
      <span>
        <Text value={text} />
        {start !== undefined && (
          <span class="remedy small">
            <span class="soft">{start.why}</span>{" "}
            <code>
              <Text value={start.command} most={300} />
            </code>{" "}
            <Copy text={start.command} what={`the command: ${start.command}`} />
          </span>
        )}
      </span>
      <span class="row">
        <a class="button" href={path}>
          {link}
        </a>
        {may("operate") && redrive !== undefined && (
          <button type="button" onClick={() => ask({ what: "redrive", target: { filter: redrive } })}>
            Redrive…
          </button>
        )}
        {may("operate") && cancel !== undefined && (
          <button type="button" class="danger" onClick={() => ask({ what: "cancel", target: cancel })}>
            Cancel…
          </button>
        )}
        {may("operate") && resume !== undefined && (
          <button type="button" onClick={() => ask({ what: "resume", queue: resume })}>
            Resume…
          </button>
        )}
        {may("admin") && limit !== undefined && (
          <button type="button" onClick={() => ask({ what: "limit", queue: limit })}>
            Limits…
          </button>
        )}
      </span>
    </div>
  );
}
