import type { VNode } from "preact";
import type { Definitions, JobSummary, JobsPage, Node, Partitions } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { count, span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time, useNow } from "../parts/time.tsx";
import { jobPath } from "../router.ts";
import { Destinations } from "./destinations.tsx";
import { PartitionTable } from "./partitions.tsx";

const mostActive = 200;
const mostShown = 5;

export function Nodes(): VNode {
  const nodes = useQuery<{ nodes: Node[] }>("nodes", {}, { everyMs: 3_000 });
  const partitions = useQuery<Partitions>("partitions", {}, { everyMs: 3_000 });
  const known = useQuery<Definitions>("definitions", {}, { everyMs: 10_000 });
  const active = useQuery<JobsPage>("jobs", { state: "active", limit: mostActive }, { everyMs: 3_000 });
  return (
    <>
      <div class="page-head">
        <h1>Nodes and relay</h1>
      </div>
      <Answer of={nodes}>
        {({ nodes: list }) =>
          list.length === 0 ? (
            <Empty title="No node is running">
              <span>
                Jobs wait until one is started: <code>escapement start</code>
              </span>
            </Empty>
          ) : (
            <NodeTable nodes={list} active={active.data?.jobs ?? []} />
          )
        }
      </Answer>
      <Answer of={partitions}>
        {(table) => <PartitionTable table={table} nodes={nodes.data?.nodes ?? []} />}
      </Answer>
      {known.data !== null && <Destinations known={known.data} />}
    </>
  );
}

interface TableProps {
  readonly nodes: readonly Node[];
  readonly active: readonly JobSummary[];
}

function NodeTable({ nodes, active }: TableProps): VNode {
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">State</th>
            <th scope="col">Roles</th>
            <th scope="col">Running</th>
            <th scope="col">Handles</th>
            <th scope="col">Started</th>
            <th scope="col">Seen</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.id} data-row>
              <td class="mono head">
                <Text value={node.id} most={60} />
                <br />
                <span class="soft small">
                  <Text value={node.host} most={40} />, pid {node.pid}, {node.version}
                </span>
              </td>
              <td>{node.alive ? <Badge tone="good">✓ alive</Badge> : <Badge tone="bad">✕ silent</Badge>}</td>
              <td data-label="Roles">{node.roles.join(", ")}</td>
              <td class="wide" data-label="Running">
                <Running node={node} jobs={active.filter(({ claimer }) => claimer === node.id)} />
              </td>
              <td class="wide" data-label="Handles">
                <Text value={node.names.join(", ")} most={200} />
                {node.queues !== null && (
                  <span class="small soft">
                    {" "}
                    in <Text value={node.queues.join(", ")} most={100} />
                  </span>
                )}
              </td>
              <td data-label="Started">
                <Time at={node.startedAt} />
              </td>
              <td data-label="Seen">
                <Time at={node.seenAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How many it runs of how many it may, and the longest of them. */
function Running({ node, jobs }: { readonly node: Node; readonly jobs: readonly JobSummary[] }): VNode {
  const now = useNow();
  const longest = [...jobs]
    .sort((a, b) => Date.parse(a.claimedAt ?? a.runAt) - Date.parse(b.claimedAt ?? b.runAt))
    .slice(0, mostShown);
  return (
    <>
      {count(node.active)} of {count(node.concurrency)}
      {longest.length > 0 && (
        <ul class="plain-list small">
          {longest.map((job) => (
            <li key={job.id}>
              <a href={jobPath(job.id)}>
                <Text value={job.name} most={40} />
              </a>{" "}
              <span class="soft">for {span(Math.max(0, now - Date.parse(job.claimedAt ?? job.runAt)))}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
