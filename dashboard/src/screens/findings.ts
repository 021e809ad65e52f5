import { shellWord } from "../../../src/runtime/shell-word.ts";
import type { JobSummary, Node, Overview, Partitions, Queue } from "../api/answers.ts";
import { count, jobs, span } from "../format.ts";
import { jobPath, pathTo } from "../router.ts";
import type { Target } from "./act-on-jobs.tsx";
import type { Filter } from "./filter.ts";

/** Something that needs attention. */
export interface Finding {
  readonly key: string;
  readonly tone: "bad" | "warn" | "lost";
  readonly text: string;
  readonly path: string;
  readonly link: string;
  /** What can be done about it at a terminal. */
  readonly start?: { readonly why: string; readonly command: string };
  /** What a redrive would take. */
  readonly redrive?: Filter;
  /** What a cancellation would take. */
  readonly cancel?: Target;
  readonly resume?: Queue;
  readonly limit?: Queue;
}

interface Sources {
  readonly seen: Overview;
  readonly partitions: Partitions | null;
  readonly running: readonly JobSummary[];
}

/** Due for longer than this, a queue does not keep up. */
const lateMs = 60_000;
/** A running job whose node has been silent for this long is not being worked on. */
const silentMs = 60_000;
const mostNamed = 5;
const startCommand = "npx escapement start";

/** The worst first. */
export function findingsOf(sources: Sources): Finding[] {
  const { seen } = sources;
  return [
    ...nobodyAlive(seen),
    ...failed(seen),
    ...orphans(seen),
    ...silentNodes(seen),
    ...stuck(sources),
    ...unowned(sources),
    ...queues(seen),
  ];
}

function nobodyAlive({ nodes, counts }: Overview): Finding[] {
  const waiting = counts.filter(({ state }) => state === "waiting").reduce((sum, row) => sum + row.count, 0);
  // Where nothing has come yet, nothing is held up.
  if (waiting === 0 || nodes.some(({ alive }) => alive)) return [];
  const text = `No node is alive: nothing runs, and ${jobs(waiting)} ${waiting === 1 ? "waits" : "wait"}.`;
  const start = { why: "Start one:", command: startCommand };
  return [{ key: "nobody", tone: "bad", text, path: "nodes", link: "Nodes", start }];
}

function failed({ counts, failures: { groups } }: Overview): Finding[] {
  const of = (state: string): number =>
    counts.filter((row) => row.state === state).reduce((sum, row) => sum + row.count, 0);
  const kinds = groups.filter(({ state }) => state === "dead").length;
  const [lost, dead] = [of("lost"), of("dead")];
  const findings: Finding[] = [];
  if (lost > 0)
    findings.push({
      key: "lost",
      tone: "lost",
      text: `${jobs(lost)} ${lost === 1 ? "is" : "are"} lost: whether ${lost === 1 ? "it" : "they"} took effect is unknown.`,
      path: pathTo("jobs", { state: "lost" }),
      // Each wants a look before it is redriven.
      link: "Look",
    });
  if (dead > 0)
    findings.push({
      key: "dead",
      tone: "bad",
      text: `${jobs(dead)} ${dead === 1 ? "is" : "are"} dead${kinds > 1 ? `, in ${count(kinds)} kinds of failure` : ""}.`,
      path: "failures",
      link: "Look",
      redrive: { state: "dead" },
    });
  return findings;
}

/** Names of which jobs wait and that no living node handles. */
function orphans({ counts, nodes }: Overview): Finding[] {
  const alive = nodes.filter((node) => node.alive);
  if (alive.length === 0) return [];
  const handled = new Set(alive.flatMap(({ names }) => names));
  const waiting = new Map<string, number>();
  for (const { state, name = "", count: many } of counts)
    if (state === "waiting" && !handled.has(name)) waiting.set(name, (waiting.get(name) ?? 0) + many);
  return [...waiting].slice(0, mostNamed).map(([name, many]) => ({
    key: `orphan ${name}`,
    tone: "warn",
    text: `No node handles ${name}: ${jobs(many)} ${many === 1 ? "waits" : "wait"}.`,
    path: pathTo("jobs", { state: "waiting", name }),
    link: "Look",
    start: { why: "Start a node whose config lists it:", command: startCommand },
    cancel: { filter: { state: "waiting", name } },
  }));
}

/** A node that stops says so, and is gone from the list. One that is silent was killed, hangs, or cannot reach the store. */
function silentNodes({ nodes, now }: Overview): Finding[] {
  // With none alive, that is the finding.
  if (!nodes.some(({ alive }) => alive)) return [];
  const silent = nodes.filter(({ alive }) => !alive);
  return silent.slice(0, mostNamed).map(({ id, seenAt, active }: Node) => ({
    key: `silent ${id}`,
    tone: "warn",
    text: `The node ${id} has been silent for ${span(Math.max(0, Date.parse(now) - Date.parse(seenAt)))}${active === 0 ? "." : `. It ran ${jobs(active)} when last seen.`}`,
    path: "nodes",
    link: "Nodes",
    start: { why: "It did not stop gracefully. If it is missed, start it again:", command: startCommand },
  }));
}

/** Running jobs of nodes that are no longer seen. The reaper takes them when their leases have run out. */
function stuck({ seen: { nodes, now }, running }: Sources): Finding[] {
  const alive = new Set(nodes.filter((node) => node.alive).map(({ id }) => id));
  const left = running.filter(
    ({ claimer, claimedAt }) =>
      claimer !== null &&
      !alive.has(claimer) &&
      claimedAt !== null &&
      Date.parse(now) - Date.parse(claimedAt) > silentMs,
  );
  const [first] = left;
  if (first === undefined) return [];
  const text = `${jobs(left.length)} ${left.length === 1 ? "is" : "are"} active on a node that is no longer seen.`;
  const path = jobPath(first.id);
  return [{ key: "stuck", tone: "warn", text, path, link: "Look at the oldest", cancel: { jobs: left } }];
}

function unowned({ partitions }: Sources): Finding[] {
  const without = (partitions?.partitions ?? []).filter(({ owner }) => owner === null).length;
  if (without === 0) return [];
  const text = `${count(without)} relay ${without === 1 ? "partition has" : "partitions have"} no owner: jobs with a route wait there.`;
  const start = { why: "Start a node with the role relay:", command: startCommand };
  return [{ key: "unowned", tone: "warn", text, path: "nodes", link: "Nodes and relay", start }];
}

/** Whether a queue has, or had, anything to do. One that was paused by mistake stays until it is resumed. */
function isUsed({ counts, nodes }: Overview, name: string): boolean {
  return (
    counts.some(({ queue }) => queue === name) || nodes.some(({ queues: served }) => served?.includes(name))
  );
}

function queues(seen: Overview): Finding[] {
  const { queues: all } = seen;
  return all.flatMap((queue): Finding[] => {
    if (queue.paused)
      return [
        {
          key: `paused ${queue.queue}`,
          tone: "warn",
          text: isUsed(seen, queue.queue)
            ? `The queue ${queue.queue} is paused${queue.due === 0 ? "." : `, with ${jobs(queue.due)} due.`}`
            : `The queue ${queue.queue} is paused, and no job is in it: is the name right?`,
          path: pathTo("jobs", { queue: queue.queue, state: "waiting" }),
          link: "Look",
          resume: queue,
        },
      ];
    if ((queue.oldestDueMs ?? 0) <= lateMs) return [];
    return [
      {
        key: `late ${queue.queue}`,
        tone: "warn",
        text: `The queue ${queue.queue} is behind: its oldest job has been due for ${span(queue.oldestDueMs ?? 0)}.`,
        path: "queues",
        link: "What holds it back?",
        ...againstLate(seen, queue),
      },
    ];
  });
}

/** A limit that may hold a queue back is raised; otherwise another node can work on it, unless there is none at all. */
function againstLate({ nodes }: Overview, queue: Queue): Pick<Finding, "start" | "limit"> {
  if (queue.concurrency !== null || queue.rate !== null) return { limit: queue };
  if (!nodes.some(({ alive }) => alive)) return {};
  const queueOption = queue.queue.startsWith("-")
    ? `--queues=${shellWord(queue.queue)}`
    : `--queues ${shellWord(queue.queue)}`;
  return { start: { why: "Start another node for it:", command: `${startCommand} ${queueOption}` } };
}
