import { formatDuration } from "../duration.ts";
import type { ErrorRecord } from "../errors.ts";
import { commandFor } from "../runtime/shell-word.ts";
import type { Cause, CauseCode, CauseFields, SilentNode } from "./cause.ts";

/** A cause for a person: what is wrong, and what to do about it, if anything. */
export interface Sentence {
  readonly what: string;
  readonly advice: string | null;
}

/** Which job the advice is about. */
interface About {
  readonly id: string;
}

type Sentences = { readonly [C in CauseCode]: (cause: CauseFields[C], about: About) => Sentence };

const sentences: Sentences = {
  "due-later": ({ runAt, inMs }, { id }) =>
    say(`it is due ${when(runAt, inMs)}`, `to run it sooner: ${commandFor("jobs run-now", id)}`),
  backoff: ({ failures, attempts, error, runAt, inMs }, { id }) =>
    say(
      `attempt ${failures} of ${attempts} failed${withError(error)}; the next one is due ${when(runAt, inMs)}`,
      `fix what failed; to retry sooner: ${commandFor("jobs run-now", id)}`,
    ),
  snoozed: ({ runAt, inMs }, { id }) =>
    say(
      `its handler snoozed it; it is due again ${when(runAt, inMs)}`,
      `to run it sooner: ${commandFor("jobs run-now", id)}`,
    ),
  expired: ({ expireAt }) =>
    say(
      `it expired at ${iso(expireAt)}: it had not started by then`,
      "none needed; the next reaper cancels it",
    ),
  parents: ({ parents, count }) =>
    say(
      `it waits for ${count === 1 ? "its parent" : `${count} parents`}: ${parents.map(({ id, state }) => `${id} (${state ?? "gone"})`).join(", ")}${count > parents.length ? ", …" : ""}`,
      parents[0] === undefined ? null : commandFor("explain", parents[0].id),
    ),
  "queue-paused": ({ queue }) =>
    say(`queue ${quote(queue)} is paused`, `resume it: ${commandFor("queues resume", queue)}`),
  "no-handler": ({ name, alive, silent }, { id }) =>
    say(
      `no living node handles ${quote(name)}${alive === 0 ? ": no node is alive" : ""}${left(silent)}`,
      silent !== null
        ? "start that node again, or another whose jobs include it"
        : alive === 0
          ? "start a node whose jobs include it"
          : `start a node whose jobs include it; if it is not wanted: ${commandFor("jobs cancel", id)}`,
    ),
  "queue-not-served": ({ name, queue, nodes }) =>
    say(
      `${listed(nodes, "node")} ${nodes.length === 1 ? "handles" : "handle"} ${quote(name)}, but not in queue ${quote(queue)}`,
      `start a node with ${quote(queue)} among its queues, or one that serves all queues`,
    ),
  "queue-concurrency": ({ queue, limit, active }) =>
    say(
      `queue ${quote(queue)} may run ${jobs(limit)} at once, and ${are(active)} active`,
      `wait until one ends, or raise the limit: ${commandFor(`queues limit --concurrency ${limit + 1}`, queue)}`,
    ),
  "queue-rate": ({ queue, limit, perMs, until, inMs }) =>
    say(
      `queue ${quote(queue)} may start ${jobs(limit)} per ${formatDuration(perMs)}, and has; the next may start ${when(until, inMs)}`,
      `wait, or raise the limit: ${commandFor(`queues limit --rate ${2 * limit}/${perMs}ms`, queue)}`,
    ),
  "key-concurrency": ({ name, key, limit, active, jobs: holders }) =>
    say(
      `${limit === null ? "a limit that this process does not know may hold it back" : `${keyed("concurrency", name, key)} allows ${jobs(limit)} at once`}, and ${are(active)} active${holders.length === 0 ? "" : `: ${holders.join(", ")}`}`,
      holders[0] === undefined
        ? "wait until one ends"
        : `wait until one ends, or see what holds it up: ${commandFor("explain", holders[0])}`,
    ),
  "key-rate": ({ name, key, limit, perMs, used, until, inMs }) =>
    say(
      limit === null
        ? `a rate that this process does not know may hold it back: ${jobs(used)} of the same key started; its window ends ${when(until, inMs)}`
        : `${keyed("rate", name, key)} allows ${jobs(limit)} to start per ${formatDuration(perMs)}, and the window is full; the next may start ${when(until, inMs)}`,
      "wait, or raise the rate in its definition",
    ),
  "runs-alone": ({ crashes, maxCrashes }) =>
    say(
      `it crashed its worker ${crashes === 1 ? "once" : `${crashes} times`}, and crash ${maxCrashes} would make it dead, so it runs alone: a worker takes it when nothing else runs there`,
      "let a worker drain, or start another node, and find out why it crashes",
    ),
  "all-slots-busy": ({ nodes, slots }) =>
    say(
      `${slots} of ${slots} slots are busy on ${nodes === 1 ? "the only node" : `the ${nodes} nodes`} that could run it`,
      "wait, start more nodes, or raise their concurrency",
    ),
  "no-relay": ({ name, relays, silent }, { id }) =>
    say(
      `no living relay publishes ${quote(name)}${relays === 0 ? ": no relay is alive" : ""}${left(silent)}`,
      `start a node whose jobs include it with its route, and relay among its roles; if it is not wanted: ${commandFor("jobs cancel", id)}`,
    ),
  "partition-without-owner": ({ partition }) =>
    say(
      partition === null
        ? "no relay has divided the namespace into partitions yet"
        : `its partition ${partition} has no owner`,
      "a living relay takes it within a lease; if none does, look at that relay's log",
    ),
  "owner-without-route": ({ name, partition, owner }) =>
    say(
      `its partition ${partition} is owned by ${owner}, which has no route for ${quote(name)}`,
      "give every relay of the namespace the same routes, and restart that one",
    ),
  "destination-refuses": ({ rollbacks, error, runAt, inMs }) =>
    say(
      `its destination refused it ${rollbacks === 1 ? "once" : `${rollbacks} times`}${withError(error)}; it is published again ${when(runAt, inMs)}`,
      "look at the broker",
    ),
  "next-in-line": ({ relayed }) =>
    say(
      `nothing holds it back: ${relayed ? "the owner of its partition publishes it" : "a worker takes it"} in turn`,
      null,
    ),
  running: ({ claimer, since, forMs }) =>
    say(`it has been running on ${claimer} for ${formatDuration(forMs)}, since ${iso(since)}`, null),
  publishing: ({ claimer, since, forMs }) =>
    say(
      `${claimer} has been publishing it for ${formatDuration(forMs)}, since ${iso(since)}, and the broker has not answered`,
      null,
    ),
  "cancel-requested": ({ claimer }) =>
    say(
      `its cancellation was requested, and its handler on ${claimer} has not ended yet`,
      "a handler ends early only if it obeys its signal",
    ),
  "claimer-silent": ({ claimer, seenAt, delivery, reapers }) =>
    say(
      `its node ${claimer} ${seenAt === null ? "is gone" : `has been silent since ${iso(seenAt)}`}; when the lease runs out, ${delivery === "at-most-once" ? "it is lost, since its outcome is unknown" : "it runs again"}`,
      reapers === 0 ? "start a node: no living node reaps" : null,
    ),
  "owner-changed": ({ claimer, delivery }) =>
    say(
      `${claimer} was publishing it and no longer owns its partition; the next owner ${delivery === "at-most-once" ? "records it as lost" : "publishes it again"}`,
      null,
    ),
};

/** The words for a cause. */
export function sentenceOf(cause: Cause, about: About): Sentence {
  const sentence = sentences[cause.code] as (cause: Cause, about: About) => Sentence;
  return sentence(cause, about);
}

/** One line: what is wrong → what to do. */
export function lineOf({ what, advice }: Sentence): string {
  return advice === null ? what : `${what} → ${advice}`;
}

const longestError = 200;

function withError(error: ErrorRecord | null): string {
  if (error === null) return "";
  const [line = ""] = error.message.split("\n");
  return ` with ${error.name}: ${line.length > longestError ? `${line.slice(0, longestError)}…` : line}`;
}

function say(what: string, advice: string | null): Sentence {
  return { what, advice };
}

function left(silent: SilentNode | null): string {
  return silent === null ? "" : `; ${silent.id} did, and has been silent since ${iso(silent.seenAt)}`;
}

function keyed(what: string, name: string, key: string | null): string {
  return key === null ? `the ${what} limit of ${quote(name)}` : `${what} key ${quote(key)} of ${quote(name)}`;
}

function listed(names: readonly string[], what: string): string {
  const shown = names.slice(0, 3).join(", ");
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return `${what}${names.length === 1 ? "" : "s"} ${shown}${more}`;
}

function jobs(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}

function are(count: number): string {
  return count === 1 ? "1 is" : `${count} are`;
}

function when(instant: Date, inMs: number): string {
  return inMs <= 0 ? `at ${iso(instant)}` : `at ${iso(instant)}, in ${formatDuration(inMs)}`;
}

function iso(date: Date): string {
  return date.toISOString();
}

function quote(text: string): string {
  return JSON.stringify(text);
}
