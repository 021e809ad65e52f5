import type { VNode } from "preact";
import type { Definitions } from "../api/answers.ts";
import { count } from "../format.ts";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { pathTo } from "../router.ts";

/** Where jobs are published, and how often this process had to try again. */
export function Destinations({ known }: { readonly known: Definitions }): VNode | null {
  const routed = known.definitions.filter(({ transport }) => transport !== null);
  const { publish, dispatched_write: named, rollback_write: rollback } = known.dispatchRetries;
  if (routed.length === 0) return null;
  return (
    <section class="panel stack" aria-labelledby="destinations">
      <h2 id="destinations">Destinations</h2>
      <ul class="plain-list lines">
        {routed.map(({ name, transport }) => (
          <li key={name} data-row>
            <a href={pathTo("jobs", { name })}>
              <Text value={name} most={60} />
            </a>{" "}
            to {transport}
          </li>
        ))}
      </ul>
      <dl class="facts">
        <dt>Refused or unanswered publishes, rolled back</dt>
        <dd>{count(publish)}</dd>
        <dt>Rollbacks that could not be written</dt>
        <dd>{count(rollback)}</dd>
        <dt>Batches that could not be named, nothing sent</dt>
        <dd>{count(named)}</dd>
      </dl>
      <p class="small soft">
        Counted by the process that serves this page, since it started <Time at={known.seenSince} />.
      </p>
    </section>
  );
}
