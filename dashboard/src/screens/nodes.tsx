import type { VNode } from "preact";
import type { Definitions, Node, Partitions } from "../api/answers.ts";
import { useHistory } from "../api/history.ts";
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

/** How many of its jobs a node shows before it is asked for all. */
const mostShown = 5;

export function Nodes(): VNode {
  const nodes = useQuery<{ nodes: Node[] }>("nodes", {}, { everyMs: 3_000 });
  const partitions = useQuery<Partitions>("partitions", {}, { everyMs: 3_000 });
  const known = useQuery<Definitions>("definitions", {}, { everyMs: 10_000 });
  const history = useHistory({ step: "hour", since: "24h", by: "name" }, 30_000);
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
            <NodeTable nodes={list} />
          )
        }
      </Answer>
      <Answer of={partitions}>
        {(table) => <PartitionTable table={table} nodes={nodes.data?.nodes ?? []} />}
      </Answer>
      {known.data !== null && (
        <Destinations known={known.data} nodes={nodes.data?.nodes ?? []} history={history} />
      )}
    </>
  );
}

function NodeTable({ nodes }: { readonly nodes: readonly Node[] }): VNode {
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
          {[...nodes]
            .sort((a, b) => Number(b.alive) - Number(a.alive))
            .map((node) => (
              <tr key={node.id} data-row>
                <td class="head">
                  <span class="mono">
                    <Text value={node.id} most={60} />
                  </span>
                  <br />
                  <span class="soft small">
                    <Text value={node.host} most={40} />, pid {node.pid}, {node.version}
                  </span>
                </td>
                <td data-label="State">
                  {node.alive ? <Badge tone="good">✓ alive</Badge> : <Badge tone="bad">✕ silent</Badge>}
                </td>
                <td class="full" data-label="Roles">
                  {node.roles.join(", ")}
                </td>
                <td class="wide" data-label="Running">
                  <Running node={node} />
                </td>
                <td class="wide" data-label="Handles">
                  <Handled names={node.names} />
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

const mostNamed = 3;

/** A few by name; of many, how many they are. */
function Handled({ names }: { readonly names: readonly string[] }): VNode {
  const all = <Text value={names.join(", ")} />;
  if (names.length <= mostNamed) return all;
  return (
    <details>
      <summary>{count(names.length)} kinds of jobs</summary>
      {all}
    </details>
  );
}

/** How many it runs of how many it may, and those that have run the longest, each with what is left of its lease. */
function Running({ node }: { readonly node: Node }): VNode {
  const { running = [] } = node;
  const rest = running.slice(mostShown);
  return (
    <>
      {node.alive ? "" : "when last seen: "}
      {count(node.active)} of {count(node.concurrency)}
      <RunningJobs jobs={running.slice(0, mostShown)} node={node} />
      {rest.length > 0 && (
        <details>
          <summary class="small">{count(rest.length)} more that run for long</summary>
          <RunningJobs jobs={rest} node={node} />
        </details>
      )}
    </>
  );
}

interface RunningProps {
  readonly jobs: NonNullable<Node["running"]>;
  readonly node: Pick<Node, "alive" | "seenAt">;
}

/** Of a silent node nobody knows what it still runs: what it said last stands as it was. */
function RunningJobs({ jobs, node: { alive, seenAt } }: RunningProps): VNode | null {
  const sinceMs = Math.max(0, useNow() - Date.parse(seenAt));
  if (jobs.length === 0) return null;
  return (
    <ul class="plain-list small running">
      {jobs.map(({ id, name, forMs, leaseMs }) => (
        <li key={id}>
          <a href={jobPath(id)}>
            <Text value={name} most={40} />
          </a>{" "}
          {alive ? `for ${span(forMs + sinceMs)}` : `had run for ${span(forMs)} then`},{" "}
          <Lease leftMs={leaseMs - sinceMs} />
        </li>
      ))}
    </ul>
  );
}

/** As of the last that the node said of itself: a renewal since then is not in it. */
function Lease({ leftMs }: { readonly leftMs: number }): VNode {
  return leftMs > 0 ? (
    <span class="soft" title="As the node last reported; it renews the lease with each heartbeat">
      lease {span(leftMs)} left
    </span>
  ) : (
    <span class="bad">lease ran out</span>
  );
}
