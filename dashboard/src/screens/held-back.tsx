import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobStory, JobsPage, Queue } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { sentence } from "../format.ts";
import { Text } from "../parts/text.tsx";
import { jobPath } from "../router.ts";

/** Asks why the oldest job of a queue waits: a limit, a saturated key, nobody who handles it. */
export function HeldBack({ queue }: { readonly queue: Queue }): VNode | null {
  const [isOpen, setOpen] = useState(false);
  if (queue.due === 0) return null;
  return (
    <details class="small held" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="soft">What holds it back?</summary>
      {isOpen && <Causes queue={queue.queue} />}
    </details>
  );
}

function Causes({ queue }: { readonly queue: string }): VNode {
  const words = { queue, state: "waiting", order: "oldest", limit: 1 };
  const oldest = useQuery<JobsPage>("jobs", words, { everyMs: 10_000 });
  const id = oldest.data?.jobs[0]?.id;
  const story = useQuery<JobStory>(id === undefined ? null : jobPath(id), {}, { everyMs: 10_000 });
  const failure = oldest.error ?? story.error;
  if (failure !== null) return <p>{failure.message}</p>;
  if (oldest.data !== null && id === undefined) return <p class="soft">Nothing waits any more.</p>;
  if (id === undefined || story.data === null) return <p class="soft">Asking…</p>;
  const causes = story.data.diagnosis?.causes ?? [];
  return (
    <p>
      {causes.length === 0
        ? "Nothing: it is about to start."
        : causes.map(({ code, what }) => (
            <span key={code}>
              <Text value={sentence(what)} />{" "}
            </span>
          ))}{" "}
      <a href={jobPath(id)}>Its oldest job</a>
    </p>
  );
}
