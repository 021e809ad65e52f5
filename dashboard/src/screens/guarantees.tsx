import type { VNode } from "preact";
import type { Definitions, Failures, History } from "../api/answers.ts";
import { useHistory } from "../api/history.ts";
import { useQuery } from "../api/use-query.ts";
import { count } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { jobPath, pathTo } from "../router.ts";
import { accountsOf, type Kept } from "./guarantee-accounts.ts";
import {
  type Account,
  type Delivery,
  deliveries,
  preventedOf,
  promises,
  type Verdict,
  verdictOf,
} from "./guarantee-verdict.ts";
import { LastProof } from "./last-proof.tsx";

/** What each definition promised, and what came of it. */
export function Guarantees(): VNode {
  const definitions = useQuery<Definitions>("definitions", {}, { everyMs: 10_000 });
  const lost = useQuery<Failures>("failures", { state: "lost" }, { everyMs: 10_000 });
  const history = useHistory({ step: "hour", since: "30d", by: "name" }, 30_000);
  const kept = useKept();
  return (
    <>
      <div class="page-head">
        <h1>Guarantees</h1>
      </div>
      <Answer of={definitions}>
        {(known) => <Accounts accounts={accountsOf({ known, kept, history })} history={history} />}
      </Answer>
      <Losses found={lost.data} />
      <LastProof />
    </>
  );
}

/** How many jobs of each name and guarantee the store has, by state. */
function useKept(): Kept {
  const of = (delivery: Delivery): Kept[Delivery] =>
    useQuery<{ counts: Kept[Delivery] }>("counts", { by: "name,state", delivery }, { everyMs: 10_000 }).data
      ?.counts ?? [];
  return {
    "at-most-once": of("at-most-once"),
    "at-least-once": of("at-least-once"),
    "effectively-once": of("effectively-once"),
  };
}

interface AccountsProps {
  readonly accounts: readonly Account[];
  readonly history: History | null;
}

function Accounts({ accounts, history }: AccountsProps): VNode {
  if (accounts.length === 0)
    return (
      <Empty title="No definitions, and no jobs">
        <span>
          A definition declares its guarantee: <code>defineJob({'{ name, delivery: "at-most-once" }'})</code>
        </span>
      </Empty>
    );
  return (
    <>
      {history !== null && (
        <div class="verdicts">
          {deliveries
            .filter((delivery) => accounts.some((one) => one.delivery === delivery))
            .map((delivery) => (
              <VerdictCard key={delivery} delivery={delivery} verdict={verdictOf(delivery, accounts)} />
            ))}
        </div>
      )}
      <section class="stack" aria-labelledby="accounts">
        <h2 id="accounts">By job</h2>
        <AccountTable accounts={accounts} hasRuns={history !== null} />
        <p class="small soft">
          Figures are of the last 30 days and of every process; dead and lost are what the store has now.
          Duplicates prevented: enqueues of an id that already existed, enqueues absorbed by a unique key, and
          outcomes of a stale claim that the store refused.
        </p>
      </section>
    </>
  );
}

/** First whether it was kept, then the figures that say so. */
function VerdictCard({
  delivery,
  verdict: { isKept, ended, facts },
}: {
  readonly delivery: Delivery;
  readonly verdict: Verdict;
}): VNode {
  return (
    <section class="panel stack tight" aria-labelledby={delivery}>
      <div class="row spread">
        <h2 id={delivery}>{delivery}</h2>
        {isKept === null ? (
          <Badge tone="quiet">no runs yet</Badge>
        ) : isKept ? (
          <Badge tone="good">✓ kept</Badge>
        ) : (
          <Badge tone="bad">✕ look into it</Badge>
        )}
      </div>
      <p class="small soft">{promises[delivery]}</p>
      <p class="row small number-list">
        <strong>{count(ended)} ended</strong>
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
    </section>
  );
}

const columns = ["Ended", "Retries", "Reruns after a fault"] as const;

function AccountTable({
  accounts,
  hasRuns,
}: {
  readonly accounts: readonly Account[];
  readonly hasRuns: boolean;
}): VNode {
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">Guarantee</th>
            {[...(hasRuns ? columns : []), "Duplicates prevented", "Dead", "Lost"].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {accounts.map((one) => (
            <tr key={`${one.delivery} ${one.name}`} data-row>
              <td class="head">
                <a href={pathTo("jobs", { name: one.name, delivery: one.delivery })}>
                  <Text value={one.name} most={60} />
                </a>
              </td>
              <td class="soft full" data-label="Guarantee">
                {one.delivery}
              </td>
              {hasRuns && (
                <>
                  <Figure label="Ended" value={one.ended} />
                  <Figure label="Retries" value={one.retries} />
                  <Figure label="Reruns after a fault" value={one.reruns} />
                </>
              )}
              <Figure label="Duplicates prevented" value={preventedOf(one)} title={preventedHow(one)} />
              <Figure label="Dead" value={one.dead} tone={one.dead > 0 ? "bad" : ""} />
              <Figure label="Lost" value={one.lost} tone={one.lost > 0 ? "lost" : ""} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function preventedHow({ existing, absorbed, stale }: Account): string {
  return `${existing} enqueues of an existing id, ${absorbed} absorbed by a unique key, ${stale} stale outcomes refused`;
}

interface FigureProps {
  readonly label: string;
  readonly value: number;
  readonly tone?: string;
  readonly title?: string;
}

/** Zero is a point, so that what is not zero is seen. */
function Figure({ label, value, tone = "", title }: FigureProps): VNode {
  if (value === 0)
    return (
      <td class="number soft zero" data-label={label} title={title}>
        <span aria-hidden="true">·</span>
        <span class="hidden-label">0</span>
      </td>
    );
  return (
    <td class={`number ${tone}`} data-label={label} title={title}>
      {count(value)}
    </td>
  );
}

function Losses({ found }: { readonly found: Failures | null }): VNode | null {
  if (found === null) return null;
  return (
    <section class="stack" aria-labelledby="losses">
      <h2 id="losses">Losses and their reasons</h2>
      {found.groups.length === 0 ? (
        <p class="soft">None. A lost job is never silent: it would be here with its reason.</p>
      ) : (
        <ul class="panel plain-list lines">
          {found.groups.map((group) => (
            <li key={`${group.name} ${group.fingerprint}`} data-row>
              <a href={pathTo("jobs", { state: "lost", name: group.name, fingerprint: group.fingerprint })}>
                {count(group.count)} × <Text value={group.name} most={60} />
              </a>
              : <Text value={group.sample} most={300} />, the last <Time at={group.lastAt} />{" "}
              <a class="small" href={jobPath(group.sampleId)}>
                example
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
