import type { Command } from "commander";
import type { SeenNode } from "../../store/nodes.ts";
import type { PartitionTable } from "../../store/partitions.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { type Line, Painted, print, printList, table } from "../output.ts";
import { away } from "../times.ts";

export function nodesCommand(): Command {
  return appCommand("nodes", "living processes, and what they run").action(async (flags: AppFlags) => {
    const { nodes, now } = await withOperations(flags, async (operations, app) => ({
      nodes: await operations.nodes(),
      now: (await app.health()).now,
    }));
    printList(flags.json, nodes, () => (nodes.length === 0 ? ["no nodes"] : nodeTable(nodes, now)));
  });
}

export function nodeTable(nodes: readonly SeenNode[], now: Date): Line[] {
  return table(
    ["node", "", "roles", "busy", "seen", "queues", "jobs"],
    nodes.map((node) => [
      node.id,
      node.alive ? "alive" : new Painted("silent", "red"),
      node.roles.join("+"),
      busy(node),
      away(node.seenAt, now),
      node.queues === null ? "all" : node.queues.join(", "),
      node.names.join(", "),
    ]),
    { whole: ["node"], importance: ["node", "", "busy", "roles", "seen", "jobs", "queues"] },
  );
}

/** What a relay has in flight takes no slots, and a node reports one sum: where there is a relay, slots do not measure it. */
export function busy({ roles, active, concurrency }: SeenNode): string {
  if (roles.includes("relay")) return `${active} in progress`;
  return roles.includes("worker") ? `${active} of ${concurrency} slots` : "";
}

export function partitionsCommand(): Command {
  return appCommand("partitions", "how relays share the partitions, and which holds what").action(
    async (flags: AppFlags) => {
      const shared = await withOperations(flags, (operations) => operations.partitions());
      if (flags.json === true) return printList(true, shared.partitions, () => []);
      print(false, shared, () => partitionLines(shared));
    },
  );
}

function partitionLines({ partitions, wanted }: PartitionTable): Line[] {
  if (partitions.length === 0) return ["no partitions: no relay has run here"];
  const more =
    wanted > partitions.length ? [`to be divided into ${wanted} when all of these are given back`] : [];
  const rows = partitions.map((one) => [
    one.partition,
    `${one.firstSlot}–${one.endSlot - 1}`,
    one.epoch,
    one.owner ?? new Painted("none", "yellow"),
    one.mark?.toISOString() ?? "",
  ]);
  const options = {
    whole: ["held by", "fired up to"],
    importance: ["partition", "held by", "fired up to", "slots", "epoch"],
  };
  return [...table(["partition", "slots", "epoch", "held by", "fired up to"], rows, options), ...more];
}
