/**
 * What a store need not show whose namespace is spread over slots that know nothing of each other (`capabilities.acrossSlots` is
 * false): tests that rest on one order of claims or of listing, on keys and limits, on parents, or on one atomic step over jobs in
 * different slots.
 */
const concerns: ReadonlySet<string> = new Set([
  "unique",
  "debounce",
  "after",
  "claim order",
  "claims ahead",
  "limits of queues",
  "limits of keys, and lanes",
  "usage of limits",
  "fragile",
  "partitions",
  "due places",
  "checkpoint",
]);

const titles: ReadonlySet<string> = new Set([
  "counts are those of a recount where jobs wait for others, absorb them and take them along",
  "counts are those of a recount after checkpoints and takeovers of the relay",
  "a new job is waiting, due now, and holds everything it was given",
  "ids, names, queues, tags, keys and inputs may hold any text",
  "a claim repeated after a lost reply gives the same jobs with the same tokens",
  "a repeated claim brings back what it took, and nothing of the claims before it",
  "a repeated claim leaves out what has ended or been taken since",
  "releasing an unstarted job gives back its try and keeps its place, also for at-most-once [K8, A8]",
  "an outcome that the delivery does not allow is refused, and the whole batch with it",
  "finishing a batch and claiming the next is one trip, and what it freed is claimed in it [C1]",
  "what is left out stays, and null takes a key away",
  "a redrive is held while another job has its unique key, and takes the key again when it is free",
  "of two dead jobs with one unique key only the first is redriven",
  "pages in the order of enqueueing, newest first, show every job once while others come and end",
  "pages in the order of enqueueing, oldest first, show every job once while others come and end",
  "reports of stale claims are dropped, and the good ones of the batch kept",
  "a sketch of a job says what the job says",
  "every term of a filter narrows, those of list among them",
  "a scan, newest first, looks at no more than it is told, says how far it came, and goes on from there",
  "a scan, oldest first, looks at no more than it is told, says how far it came, and goes on from there",
  "a full page goes on behind its last job",
  "each queue tells what is due, due later, active and blocked, and how old the oldest due job is",
  "jobs of lanes count for their queue, and so do those that run alone",
  "a note stands in the trail without a claimer, whatever the job's state, and also by an alias",
  "a queue is configured piece by piece: what is left out stays, null takes away",
  "an occurrence that is already in the ledger keeps its row and adds no job [K2]",
  "an occurrence whose job is absorbed is accounted for by the job that stands for it",
  "a deleted id is a new one: it is added, with no past",
  "a job that holds its unique key for a time stays until it does not",
  "a deleted parent is an unknown one, and the ledger keeps its rows",
  "ended jobs are forgotten, others refused, and what is not there is unknown",
  "a refused batch changes no job that it would have",
  "with a job go its trail and its aliases: the ids may be used again",
  "a job that still holds its unique key for a time stays until it does not",
  "a job that holds its unique key for a time stays beyond its own retention",
  "a job's own retention counts whoever ends it: the relay, the reaper, a parent, a transaction",
  "jobs, ids, unique keys and aliases of two namespaces know nothing of each other",
  "queues, limits, nodes, schedules and partitions stay in their namespace",
  "what becomes claimable later is told too: a retry, a redrive, an update, an unblocked child",
  "without faults every job is run exactly once by nodes that step in parallel [C1]",
  "limits hold when many claim at once: a key's, a queue's, and a rate",
  "many producers of one unique key, at once, make one job, and the rest are aliases of it",
  "ten thousand jobs are enqueued, claimed, extended, finished, counted and pruned in single calls",
  "a parent with a thousand children unblocks them all",
  "a step repeated after a lost reply finishes once and claims once",
  "a step with a stale sequence still writes its finishes",
  "claims, finishes and sequences stay in their namespace",
]);

export const acrossSlotsReason =
  "this namespace is spread over slots that know nothing of each other (capabilities.acrossSlots is false)";

export function needsAcrossSlots(concern: string, title: string): boolean {
  return concerns.has(concern) || titles.has(title);
}
