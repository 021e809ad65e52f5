import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobStory, OldestDue, Queue } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { Text } from "../parts/text.tsx";
import { jobPath } from "../router.ts";
import { causeText } from "./cause-words.ts";

/** Due for so long, a queue is asked about without a click. */
const longMs = 5_000;

/**
 * Why the oldest due job of a queue waits: a limit, a saturated key, no node that handles it. No store can list all saturated keys of a queue
 * without reading all that waits, so the page says which job it speaks of.
 */
export function HeldBack({ queue }: { readonly queue: Queue }): VNode | null {
  const isLong = (queue.oldestDueMs ?? 0) > longMs;
  const [isOpen, setOpen] = useState(isLong);
  if (queue.due === 0) return null;
  if (queue.paused) return <p class="small soft">No job starts until it is resumed.</p>;
  return (
    <details class="small held" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="soft">What holds its oldest job back?</summary>
      {isOpen && <Causes queue={queue.queue} />}
    </details>
  );
}

function Causes({ queue }: { readonly queue: string }): VNode {
  const path = `queues/${encodeURIComponent(queue)}/oldest`;
  const oldest = useQuery<OldestDue>(path, {}, { everyMs: 10_000 });
  const id = oldest.data?.id ?? null;
  const story = useQuery<JobStory>(id === null ? null : jobPath(id), {}, { everyMs: 10_000 });
  const failure = oldest.error ?? story.error;
  if (failure !== null) return <p>{failure.message}</p>;
  if (oldest.data !== null && id === null) return <p class="soft">Nothing is due now.</p>;
  if (id === null || story.data === null) return <p class="soft">Asking…</p>;
  const causes = story.data.diagnosis?.causes ?? [];
  return (
    <p>
      {causes.length === 0
        ? "Nothing: it is about to start."
        : causes.map((cause) => (
            <span key={cause.code}>
              <Text value={causeText(cause)} />{" "}
            </span>
          ))}{" "}
      <span class="soft">Others may wait for other reasons.</span> <a href={jobPath(id)}>The oldest job</a>
    </p>
  );
}
