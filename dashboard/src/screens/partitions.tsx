import type { VNode } from "preact";
import type { Node, Partitions } from "../api/answers.ts";
import { count, span } from "../format.ts";
import { Badge } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";

type Partition = Partitions["partitions"][number];

interface TableProps {
  readonly table: Partitions;
  readonly nodes: readonly Node[];
}

const mostOpen = 4;

/** Whose turn it is to publish what: each partition with its owner, its epoch and how far it has come. */
export function PartitionTable({ table, nodes }: TableProps): VNode {
  const relays = nodes.filter(({ alive, roles }) => alive && roles.includes("relay"));
  return (
    <section class="stack" aria-labelledby="partitions">
      <h2 id="partitions">Relay</h2>
      {table.partitions.length === 0 ? (
        <p class="soft">
          No relay has taken a partition yet.{" "}
          {relays.length === 0
            ? "Jobs with a route wait until a node with the role relay runs."
            : `${count(relays.length)} could: they take partitions once a job has a route.`}
        </p>
      ) : (
        <Folded table={table} nodes={nodes} />
      )}
    </section>
  );
}

/** Few partitions are shown at once; many only when one of them needs a look. */
function Folded({ table, nodes }: TableProps): VNode {
  const { partitions } = table;
  const lagOf = (one: Partition): number | null =>
    nodes.find(({ id }) => id === one.owner)?.lags?.find((lag) => lag.partition === one.partition)?.lagMs ??
    null;
  const free = partitions.filter(({ owner }) => owner === null).length;
  const late = partitions.filter((one) => lagOf(one) !== null).length;
  const owners = new Set(partitions.flatMap(({ owner }) => owner ?? [])).size;
  const held = `${count(partitions.length - free)} of ${count(partitions.length)} partitions are held by ${owners === 1 ? "one relay" : `${count(owners)} relays`}`;
  return (
    <details class="stack" open={partitions.length <= mostOpen || free > 0 || late > 0}>
      <summary>
        {held}, {late === 0 ? "and nothing waits to be published." : `and ${count(late)} of them lag.`}
      </summary>
      <Rows table={table} lagOf={lagOf} />
    </details>
  );
}

interface RowsProps {
  readonly table: Partitions;
  lagOf(one: Partition): number | null;
}

function Rows({ table, lagOf }: RowsProps): VNode {
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Partition</th>
            <th scope="col">Slots</th>
            <th scope="col">Owner</th>
            <th scope="col" class="number">
              Epoch
            </th>
            <th scope="col">Fired up to</th>
            <th scope="col" class="number">
              Lag
            </th>
          </tr>
        </thead>
        <tbody>
          {table.partitions.map((one) => (
            <tr key={one.partition} data-row>
              <td data-label="Partition">{one.partition}</td>
              <td class="mono" data-label="Slots">
                {one.firstSlot} to {one.endSlot - 1}
              </td>
              <td class="mono" data-label="Owner">
                {one.owner === null ? (
                  <Badge tone="warn">nobody</Badge>
                ) : (
                  <Text value={one.owner} most={60} />
                )}
              </td>
              <td class="number" data-label="Epoch">
                {count(one.epoch)}
              </td>
              <td data-label="Fired up to">
                <Time at={one.mark} none="nothing yet" />
              </td>
              <Lag lagMs={lagOf(one)} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How long a due job had waited for its relay when that last said so. */
function Lag({ lagMs }: { readonly lagMs: number | null }): VNode {
  return (
    <td class={`number ${lagMs === null ? "soft" : ""}`} data-label="Lag">
      {lagMs === null ? "none" : span(lagMs)}
    </td>
  );
}
