import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Failures as Found } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { ago, count, dayAndTime, jobs } from "../format.ts";
import { useMay } from "../identity.ts";
import { Answer } from "../parts/answer.tsx";
import { StateBadge } from "../parts/badge.tsx";
import { Empty } from "../parts/problem.tsx";
import { Spark } from "../parts/spark.tsx";
import { Text } from "../parts/text.tsx";
import { Time, useNow } from "../parts/time.tsx";
import { jobPath, pathTo } from "../router.ts";
import { ActOnJobs } from "./act-on-jobs.tsx";
import type { Filter } from "./filter.ts";

type Group = Found["groups"][number];

function filterOf({ state, name, fingerprint }: Group): Filter {
  return { state, name, fingerprint };
}

export function FailuresScreen(): VNode {
  const failures = useQuery<Found>("failures", {}, { everyMs: 5_000 });
  const [asked, setAsked] = useState<Group | null>(null);
  return (
    <>
      <div class="page-head">
        <h1>Failures</h1>
      </div>
      <Answer of={failures}>
        {(found) =>
          found.groups.length === 0 ? (
            <Empty title="Nothing is dead, nothing is lost">
              <span>Jobs that use up their attempts, or whose outcome is unknown, are grouped here.</span>
            </Empty>
          ) : (
            <>
              <p class="soft">
                {jobs(found.count)} failed in {count(found.groups.length)}{" "}
                {found.groups.length === 1 ? "way" : "ways"}
                {found.isPartial ? `, among the newest ${count(found.looked)} looked at` : ""}.
              </p>
              <GroupTable found={found} redrive={setAsked} />
            </>
          )
        }
      </Answer>
      {asked !== null && (
        <ActOnJobs
          action="redrive"
          target={{ filter: filterOf(asked) }}
          about={asked.shape}
          close={() => setAsked(null)}
          done={failures.refresh}
        />
      )}
    </>
  );
}

interface TableProps {
  readonly found: Found;
  redrive(group: Group): void;
}

function GroupTable({ found, redrive }: TableProps): VNode {
  const mayOperate = useMay("operate");
  return (
    <div class="table-wrap">
      <table class="cards pictured">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">What went wrong</th>
            <th scope="col" class="number">
              Jobs
            </th>
            <th scope="col">When</th>
            <th scope="col">First ended</th>
            <th scope="col">Last ended</th>
            {mayOperate && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {found.groups.map((group) => (
            <tr key={`${group.fingerprint} ${group.name} ${group.state}`} data-row>
              <td>
                <StateBadge state={group.state} />
              </td>
              <td class="wide">
                <a href={pathTo("jobs", filterOf(group))}>
                  <Text value={group.shape === "" ? "no error was kept" : group.shape} most={200} />
                </a>
                <br />
                <span class="small soft">
                  <Text value={group.name} most={60} /> · <a href={jobPath(group.sampleId)}>latest example</a>
                </span>
              </td>
              <td class="number" data-label="Jobs">
                {count(group.count)}
              </td>
              <td>
                <Spark
                  counts={group.spark}
                  label={sparkLabel(found, group)}
                  tone={group.state === "lost" ? "lost" : "bad"}
                />
                <SparkAxis found={found} />
              </td>
              <td data-label="First ended">
                <Time at={group.firstAt} />
              </td>
              <td data-label="Last ended">
                <Time at={group.lastAt} />
              </td>
              {mayOperate && (
                <td>
                  <button type="button" onClick={() => redrive(group)}>
                    Redrive all…
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The sparks have one axis in common: from the first to the last that ended. */
function SparkAxis({ found: { from, to } }: { readonly found: Found }): VNode | null {
  const now = useNow();
  if (from === null || to === null) return null;
  return (
    <span class="spark-axis soft" aria-hidden="true">
      <span>{ago(from, now)}</span>
      <span>{ago(to, now)}</span>
    </span>
  );
}

function sparkLabel({ from, to }: Found, { count: many }: Group): string {
  if (from === null || to === null) return "";
  return `${jobs(many)} between ${dayAndTime(from)} and ${dayAndTime(to)}`;
}
