import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Queue } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { jobs } from "../format.ts";
import { because, Confirm } from "../parts/dialog.tsx";
import { tell } from "../parts/toasts.tsx";

interface Props {
  readonly queue: Queue;
  close(): void;
  done(): void;
}

function queuePath(queue: string): string {
  return `queues/${encodeURIComponent(queue)}`;
}

function running(active: number): string {
  if (active === 0) return "None is running.";
  return active === 1 ? "1 running job will finish." : `${active} running jobs will finish.`;
}

async function turn(queue: string, what: "pause" | "resume", reason: string): Promise<void> {
  await request(`${queuePath(queue)}/${what}`, { method: "POST", body: because(reason) });
}

export function PauseQueue({
  queue,
  what,
  close,
  done,
}: Props & { readonly what: "pause" | "resume" }): VNode {
  const isPause = what === "pause";
  const run = async (reason: string): Promise<void> => {
    await turn(queue.queue, what, reason);
    tell(isPause ? `${queue.queue} is paused.` : `${queue.queue} is running again.`, "good", async () => {
      await turn(queue.queue, isPause ? "resume" : "pause", "undone");
      done();
    });
    done();
  };
  return (
    <Confirm
      title={isPause ? `Pause ${queue.queue}?` : `Resume ${queue.queue}?`}
      action={isPause ? "Pause" : "Resume"}
      run={run}
      close={close}
    >
      <p>
        {isPause
          ? `No more of its jobs start, on any node. ${running(queue.active)} It stays paused until someone resumes it.`
          : `${jobs(queue.due)} that are due may start at once.`}
      </p>
    </Confirm>
  );
}

const spanPattern = /^\d+(\.\d+)?(ms|s|m|h|d|w)$/;

function asTyped(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`;
}

export function LimitQueue({ queue, close, done }: Props): VNode {
  const [concurrency, setConcurrency] = useState(queue.concurrency === null ? "" : String(queue.concurrency));
  const [limit, setLimit] = useState(queue.rate === null ? "" : String(queue.rate.limit));
  const [per, setPer] = useState(queue.rate === null ? "1s" : asTyped(queue.rate.perMs));
  const isSpan = limit === "" || spanPattern.test(per.trim());
  const change = async (limits: object, reason: string): Promise<void> => {
    await request(queuePath(queue.queue), { method: "PATCH", body: { ...limits, ...because(reason) } });
    done();
  };
  const before = {
    concurrency: queue.concurrency,
    rate: queue.rate === null ? null : { limit: queue.rate.limit, per: queue.rate.perMs },
  };
  const run = async (reason: string): Promise<void> => {
    const after = {
      concurrency: concurrency === "" ? null : Number(concurrency),
      rate: limit === "" ? null : { limit: Number(limit), per: per.trim() },
    };
    await change(after, reason);
    tell(`The limits of ${queue.queue} were changed.`, "good", () => change(before, "undone"));
  };
  return (
    <Confirm title={`Limits of ${queue.queue}`} action="Change" isReady={isSpan} run={run} close={close}>
      <p>Limits apply on all nodes from the next start. Running jobs continue.</p>
      <label class="field">
        Jobs at once (empty: no limit)
        <input
          type="number"
          min={1}
          value={concurrency}
          onInput={(event) => setConcurrency(event.currentTarget.value)}
        />
      </label>
      <div class="fields">
        <label class="field">
          Starts (empty: no limit)
          <input
            type="number"
            min={1}
            value={limit}
            onInput={(event) => setLimit(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          in each
          <input
            value={per}
            aria-invalid={!isSpan}
            aria-describedby="per-what"
            onInput={(event) => setPer(event.currentTarget.value)}
          />
        </label>
      </div>
      <p id="per-what" class={isSpan ? "small soft" : "small bad"} role="status">
        A number and a unit, ms, s, m, h or d: for example 500ms, 30s or 1h.
      </p>
    </Confirm>
  );
}
