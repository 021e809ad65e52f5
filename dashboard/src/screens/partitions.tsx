import type { VNode } from "preact";
import type { Node, Partitions } from "../api/answers.ts";
import { count, span } from "../format.ts";
import { Badge } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { Time, useNow } from "../parts/time.tsx";

/** Whose turn it is to publish what: each partition with its owner, its epoch and how far it has come. */
export function PartitionTable({
  table,
  nodes,
}: {
  readonly table: Partitions;
  readonly nodes: readonly Node[];
}): VNode {
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
        <Rows table={table} />
      )}
    </section>
  );
}

function Rows({ table }: { readonly table: Partitions }): VNode {
  const now = useNow();
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col" class="number">
              Partition
            </th>
            <th scope="col">Slots</th>
            <th scope="col">Owner</th>
            <th scope="col" class="number">
              Epoch
            </th>
            <th scope="col">Fired up to</th>
            <th scope="col" class="number">
              Behind by
            </th>
          </tr>
        </thead>
        <tbody>
          {table.partitions.map((one) => (
            <tr key={one.partition} data-row>
              <td class="number" data-label="Partition">
                {one.partition}
              </td>
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
              <td class="number" data-label="Behind by">
                {one.mark === null ? "–" : span(Math.max(0, now - Date.parse(one.mark)))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
