import { sleepAwake } from "../clock.ts";
import { EscapementError, readErrorRecord } from "../errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import { isTerminal, resultNotKept } from "../state.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { Connection } from "./connection.ts";

/** How often to look when no notice arrives. */
const pollMs = 500;

/**
 * Waits until a job has ended and returns its result.
 *
 * @param why says why the job has not ended, for the message of a timeout.
 * @throws EscapementError `job-failed` when it ended in any other state than succeeded, `result-not-kept`, `result-timeout`, `not-found`, or
 * `stopped` when the app was stopped meanwhile.
 */
export async function waitForResult(
  connection: Connection,
  runtime: Runtime,
  id: string,
  timeoutMs: number,
  why: () => Promise<string>,
): Promise<unknown> {
  const store = await connection.store();
  const deadline = runtime.clock.monotonic() + timeoutMs;
  let wake = new AbortController();
  // An absorbed id waits for the job that stands for it, which is known once it was read.
  let known = id;
  const stop = (): void => wake.abort();
  const unsubscribe = await store.subscribe((notice) => {
    if (notice.kind === "ended" && (notice.ids === null || notice.ids.includes(known))) wake.abort();
  });
  connection.closing.addEventListener("abort", stop);
  try {
    for (;;) {
      const ended = wake.signal;
      const [job] = await withRetries(runtime, () => connection.ask((asked) => asked.get({ ids: [id] })));
      if (job === null || job === undefined) {
        throw new EscapementError(
          "not-found",
          `there is no job ${JSON.stringify(id)}; it was never enqueued, or is no longer kept`,
        );
      }
      if (isTerminal(job.state)) return read(job);
      known = job.id;
      const leftMs = deadline - runtime.clock.monotonic();
      if (leftMs <= 0) {
        // A store that cannot say why must not hide that the time is up.
        const reason = await why().catch(() => "");
        throw new EscapementError(
          "result-timeout",
          `job ${JSON.stringify(id)} is still ${job.state} after ${timeoutMs} ms${reason === "" ? "" : `: ${reason}`}`,
        );
      }
      await sleepAwake(runtime.clock, Math.min(pollMs, leftMs), ended);
      if (ended.aborted) wake = new AbortController();
    }
  } finally {
    connection.closing.removeEventListener("abort", stop);
    if (!connection.closing.aborted) await unsubscribe();
  }
}

function read(job: StoredJob): unknown {
  if (job.state === "succeeded" && job.reason?.startsWith(resultNotKept)) {
    throw new EscapementError(
      "result-not-kept",
      `job ${JSON.stringify(job.id)} has succeeded, ${job.reason}; return less, or store it elsewhere and return a reference`,
    );
  }
  if (job.state === "succeeded") return readResult(job);
  const error = readErrorRecord(job.error);
  const why = [job.reason, error === null ? null : `${error.name}: ${error.message}`].filter(
    (part) => part !== null,
  );
  throw new EscapementError(
    "job-failed",
    `job ${JSON.stringify(job.id)} is ${job.state}: ${why.join(", ")}`,
    {
      cause: error,
    },
  );
}

function readResult({ id, result }: StoredJob): unknown {
  try {
    return result === null ? null : JSON.parse(result);
  } catch (cause) {
    throw new EscapementError(
      "unreadable-row",
      `job ${JSON.stringify(id)} has succeeded, but its result is not JSON: something else has written to it`,
      { cause },
    );
  }
}
