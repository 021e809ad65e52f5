import type { VNode } from "preact";
import type { Definitions, Failures, History } from "../api/answers.ts";
import { useHistory } from "../api/history.ts";
import { useQuery } from "../api/use-query.ts";
import { count } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { jobPath, pathTo } from "../router.ts";
import {
  type Account,
  accountsOf,
  type Delivery,
  deliveries,
  type Kept,
  promises,
} from "./guarantee-accounts.ts";

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
        {(known) => (
          <Accounts known={known} accounts={accountsOf({ known, kept, history })} history={history} />
        )}
      </Answer>
      <Losses found={lost.data} />
      <Proof />
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
  readonly known: Definitions;
  readonly accounts: readonly Account[];
  readonly history: History | null;
}

function Accounts({ known, accounts, history }: AccountsProps): VNode {
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
      {deliveries
        .filter((delivery) => accounts.some((one) => one.delivery === delivery))
        .map((delivery) => (
          <section key={delivery} class="stack" aria-labelledby={delivery}>
            <div>
              <h2 id={delivery}>{delivery}</h2>
              <p class="soft">{promises[delivery]}</p>
            </div>
            <AccountTable
              accounts={accounts.filter((one) => one.delivery === delivery)}
              hasRuns={history !== null}
            />
          </section>
        ))}
      <p class="small soft">
        {history === null
          ? "This server keeps no figures of runs. "
          : "Runs and reruns are of the last 30 days. "}
        Duplicates prevented were seen by the process that serves this page, since{" "}
        <Time at={known.seenSince} />.
      </p>
    </>
  );
}

function AccountTable({
  accounts,
  hasRuns,
}: {
  readonly accounts: readonly Account[];
  readonly hasRuns: boolean;
}): VNode {
  return (
    <div class="table-wrap">
      <table class="cards even">
        <thead>
          <tr>
            <th scope="col">Job</th>
            {hasRuns && (
              <>
                <th scope="col" class="number">
                  Ended
                </th>
                <th scope="col" class="number">
                  Retries
                </th>
                <th scope="col" class="number">
                  Reruns after a fault
                </th>
              </>
            )}
            <th scope="col" class="number">
              Duplicates prevented
            </th>
            <th scope="col" class="number">
              Dead
            </th>
            <th scope="col" class="number">
              Lost
            </th>
          </tr>
        </thead>
        <tbody>
          {accounts.map((one) => (
            <tr key={one.name} data-row>
              <td class="head">
                <a href={pathTo("jobs", { name: one.name, delivery: one.delivery })}>
                  <Text value={one.name} most={60} />
                </a>
              </td>
              {hasRuns && (
                <>
                  <Figure label="Ended" value={one.ended} />
                  <Figure label="Retries" value={one.retries} />
                  <Figure label="Reruns after a fault" value={one.reruns} />
                </>
              )}
              <Figure label="Duplicates prevented" value={one.prevented} title={one.preventedHow} />
              <Figure label="Dead" value={one.dead} tone={one.dead > 0 ? "bad" : ""} />
              <Figure label="Lost" value={one.lost} tone={one.lost > 0 ? "lost" : ""} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface FigureProps {
  readonly label: string;
  readonly value: number;
  readonly tone?: string;
  readonly title?: string;
}

function Figure({ label, value, tone = "", title }: FigureProps): VNode {
  return (
    <td class={`number ${tone} ${value === 0 ? "soft" : ""}`} data-label={label} title={title}>
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

function Proof(): VNode {
  return (
    <section class="panel stack" aria-labelledby="proof">
      <h2 id="proof">See them proven</h2>
      <p>
        <code>escapement verify</code> runs a workload on a store of its own, kills processes and cuts
        connections meanwhile, and checks every job against its guarantee. Its report is a file; this server
        has none to show.
      </p>
    </section>
  );
}
