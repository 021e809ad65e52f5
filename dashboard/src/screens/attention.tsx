import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobSummary, JobsPage, Overview, Partitions, Queue } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { useMay } from "../identity.ts";
import { Text } from "../parts/text.tsx";
import { ActOnJobs } from "./act-on-jobs.tsx";
import type { Filter } from "./filter.ts";
import { type Finding, findingsOf } from "./findings.ts";
import { PauseQueue } from "./queue-actions.tsx";

type Asked = { readonly redrive: Filter } | { readonly resume: Queue } | null;

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
      {asked !== null && "redrive" in asked && (
        <ActOnJobs action="redrive" target={{ filter: asked.redrive }} close={close} done={refresh} />
      )}
      {asked !== null && "resume" in asked && (
        <PauseQueue queue={asked.resume} what="resume" close={close} done={refresh} />
      )}
    </section>
  );
}

function Notice({ finding, ask }: { readonly finding: Finding; ask(asked: Asked): void }): VNode {
  const mayOperate = useMay("operate");
  const { tone, text, path, link, redrive, resume } = finding;
  return (
    <div class={`notice ${tone}`}>
      <span>
        <Text value={text} />
      </span>
      <span class="row">
        <a class="button" href={path}>
          {link}
        </a>
        {mayOperate && redrive !== undefined && (
          <button type="button" onClick={() => ask({ redrive })}>
            Redrive…
          </button>
        )}
        {mayOperate && resume !== undefined && (
          <button type="button" onClick={() => ask({ resume })}>
            Resume…
          </button>
        )}
      </span>
    </div>
  );
}
