import { mayClaimAhead } from "../../../state.ts";
import { type Shelf, shelfOf } from "../../shelf.ts";
import { openGate } from "../limits/gates.ts";
import type { Session } from "../session.ts";
import type { JobRow } from "./find.ts";

/** What decides where an idle job is found. */
export type Idle = Pick<
  JobRow,
  | "seq"
  | "queue"
  | "name"
  | "delivery"
  | "priority"
  | "runAt"
  | "expireAt"
  | "attempt"
  | "crashes"
  | "maxCrashes"
  | "token"
  | "ahead"
  | "relayed"
  | "lane"
  | "concurrencyKey"
  | "rateKey"
  | "debounceKey"
>;

const shelve = "update escapement_jobs set shelf = ? where seq = ?";
const shelvePlain = `insert into escapement_plain (ns, queue, name, priority, run_at, seq, expire_at, direct, untried)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const unshelvePlain = `delete from escapement_plain
  where ns = ? and queue = ? and name = ? and priority = ? and run_at = ? and seq = ?`;
const keepUntried =
  "insert or replace into escapement_untried (seq, ns, expire_at, debounce_key) values (?, ?, ?, ?)";
const dropUntried = "delete from escapement_untried where seq = ?";

/** Puts a waiting job where claims, or the relay, find it. */
export function place(session: Session, job: Idle): Shelf {
  const { connection, ns } = session;
  const expireAt = job.attempt === 0 ? job.expireAt : null;
  const untried = writeUntried(session, job.seq, expireAt, job.token === 0 ? job.debounceKey : null);
  const shelf = shelfOf(job);
  if (shelf === "plain") {
    const { queue, name, priority, runAt, seq } = job;
    const direct = mayClaimAhead(job) ? 0 : 1;
    connection.run(shelvePlain, ns, queue, name, priority, runAt, seq, expireAt, direct, untried ? 1 : 0);
  } else {
    connection.run(shelve, shelf, job.seq);
  }
  session.notices.claimable(job.queue);
  if (shelf === "lane" && job.lane !== null) openGate(session, { ...job, lane: job.lane }, job.runAt);
  return shelf;
}

/** A blocked job can only expire. */
export function placeBlocked(session: Session, job: Pick<JobRow, "seq" | "expireAt">): void {
  writeUntried(session, job.seq, job.expireAt, null);
}

function writeUntried(
  { connection, ns }: Session,
  seq: number,
  expireAt: number | null,
  debounceKey: string | null,
): boolean {
  if (expireAt === null && debounceKey === null) return false;
  connection.run(keepUntried, seq, ns, expireAt, debounceKey);
  return true;
}

/** Takes a waiting or blocked job from its place. The caller marks its lane, because it knows why. */
export function displace({ connection, ns }: Session, job: JobRow): void {
  connection.run(dropUntried, job.seq);
  if (job.state === "blocked") return;
  if (shelfOf(job) !== "plain") {
    connection.run(shelve, null, job.seq);
    return;
  }
  const { queue, name, priority, runAt, seq } = job;
  if (connection.run(unshelvePlain, ns, queue, name, priority, runAt, seq) > 0) return;
  // Another program has written to one of the two: claims must not find the job here.
  connection.run("delete from escapement_plain where seq = ?", seq);
}
