import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Queue } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { count, jobs, span } from "../format.ts";
import { useRole } from "../identity.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { pathTo } from "../router.ts";
import { HeldBack } from "./held-back.tsx";
import { LimitQueue, PauseQueue } from "./queue-actions.tsx";
import { perMinute, useRates } from "./rates.ts";

type Asked = { readonly queue: Queue; readonly what: "pause" | "resume" | "limit" } | null;

export function Queues(): VNode {
  const queues = useQuery<{ queues: Queue[] }>("queues", {}, { everyMs: 2_000 });
  const [asked, setAsked] = useState<Asked>(null);
  const close = (): void => setAsked(null);
  return (
    <>
      <div class="page-head">
        <h1>Queues</h1>
      </div>
      <Answer of={queues}>
        {({ queues: list }) =>
          list.length === 0 ? (
            <Empty title="No queue has anything to do, and none was configured">
              <span>A queue is here as soon as a job waits in it.</span>
            </Empty>
          ) : (
            <QueueTable queues={list} ask={setAsked} />
          )
        }
      </Answer>
      {asked?.what === "limit" && <LimitQueue queue={asked.queue} close={close} done={queues.refresh} />}
      {(asked?.what === "pause" || asked?.what === "resume") && (
        <PauseQueue queue={asked.queue} what={asked.what} close={close} done={queues.refresh} />
      )}
    </>
  );
}

function QueueTable({ queues, ask }: { readonly queues: readonly Queue[]; ask(asked: Asked): void }): VNode {
  const may = useRole();
  const rates = useRates();
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col" class="number">
              Due
            </th>
            <th scope="col" class="number">
              Later
            </th>
            <th scope="col" class="number">
              Active
            </th>
            <th scope="col" class="number">
              Blocked
            </th>
            <th scope="col" class="number">
              Oldest due
            </th>
            {rates !== null && (
              <th scope="col" class="number">
                Ended a minute
              </th>
            )}
            <th scope="col">Limits</th>
            {may("operate") && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => (
            <tr key={queue.queue} data-row>
              <td class="head">
                <a href={pathTo("jobs", { queue: queue.queue, state: "waiting" })}>
                  <Text value={queue.queue} most={60} />
                </a>{" "}
                {queue.paused && <Badge tone="warn">❚❚ paused</Badge>}
                <HeldBack queue={queue} />
              </td>
              <Figures queue={queue} />
              {rates !== null && (
                <td class="number" data-label="Ended a minute">
                  {perMinute(rates.get(queue.queue) ?? 0)}
                </td>
              )}
              <td data-label="Limits">{limitsOf(queue)}</td>
              {may("operate") && (
                <td>
                  <span class="row">
                    <button
                      type="button"
                      onClick={() => ask({ queue, what: queue.paused ? "resume" : "pause" })}
                    >
                      {queue.paused ? "Resume…" : "Pause…"}
                    </button>
                    {may("admin") && (
                      <button type="button" onClick={() => ask({ queue, what: "limit" })}>
                        Limits…
                      </button>
                    )}
                  </span>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Figures({ queue }: { readonly queue: Queue }): VNode {
  return (
    <>
      <td class="number" data-label="Due">
        {atLeast(queue, queue.due)}
      </td>
      <td class="number" data-label="Later">
        {queue.isExact ? count(queue.later) : `≤ ${count(queue.later)}`}
      </td>
      <td class="number" data-label="Active">
        {count(queue.active)}
      </td>
      <td class="number" data-label="Blocked">
        {count(queue.blocked)}
      </td>
      <td class="number" data-label="Oldest due">
        {queue.oldestDueMs === null ? "–" : span(queue.oldestDueMs)}
      </td>
    </>
  );
}

function atLeast({ isExact }: Queue, value: number): string {
  return isExact ? count(value) : `≥ ${count(value)}`;
}

function limitsOf({ concurrency, rate, active }: Queue): VNode {
  if (concurrency === null && rate === null) return <span class="soft">none</span>;
  const isFull = concurrency !== null && active >= concurrency;
  return (
    <>
      {concurrency !== null && `${jobs(concurrency)} at once`}
      {isFull && (
        <>
          {" "}
          <Badge tone="warn">all in use</Badge>
        </>
      )}
      {concurrency !== null && rate !== null && <br />}
      {rate !== null &&
        `${count(rate.limit)} ${rate.limit === 1 ? "start" : "starts"} per ${span(rate.perMs)}`}
    </>
  );
}
