import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { parseExact } from "../../../src/exact-json.ts";
import type { JobStory } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { because, Confirm } from "../parts/dialog.tsx";
import { tell } from "../parts/toasts.tsx";
import { go, jobPath } from "../router.ts";

type Job = JobStory["job"];

/** A text that must be JSON, and what is wrong with it. */
function useJson(value: unknown): {
  readonly text: string;
  readonly isChanged: boolean;
  readonly problem: string | null;
  set(text: string): void;
} {
  const [first] = useState(() => JSON.stringify(value, null, 2) ?? "null");
  const [text, set] = useState(first);
  const problem = useMemo(() => problemIn(text), [text]);
  return { text, isChanged: text !== first, problem, set };
}

function problemIn(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function InputField({ json }: { readonly json: ReturnType<typeof useJson> }): VNode {
  const area = useRef<HTMLTextAreaElement>(null);
  // A browser puts the cursor at the end of what it is given, and shows that.
  useEffect(() => {
    area.current?.setSelectionRange(0, 0);
    area.current?.scrollTo(0, 0);
  }, []);
  return (
    <label class="field">
      Input, as JSON
      <textarea
        ref={area}
        value={json.text}
        spellcheck={false}
        wrap="off"
        aria-invalid={json.problem !== null}
        onInput={(event) => json.set(event.currentTarget.value)}
      />
      <span class="small soft" role="status">
        {json.problem ?? "It is checked against the job's schema when it is saved."}
      </span>
    </label>
  );
}

function PriorityField({ value, set }: { readonly value: string; set(value: string): void }): VNode {
  return (
    <label class="field">
      Priority; higher runs first
      <input type="number" step={1} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

type Changes = Readonly<Record<string, unknown>>;

async function change(id: string, changes: Changes, reason: string): Promise<void> {
  const { outcome, state } = await request<{ outcome: string; state: string | null }>(jobPath(id), {
    method: "PATCH",
    body: { ...changes, ...because(reason) },
  });
  if (outcome !== "updated") throw new Error(`It is ${state ?? "gone"} by now and can no longer be changed.`);
}

/** Changes a job that has not started: only what was edited, so nothing is written back that somebody else changed meanwhile, or that was masked. */
export function EditJob({ job, close, done }: { readonly job: Job; close(): void; done(): void }): VNode {
  // The page goes on asking for the job while the dialog is open.
  const [before] = useState(job);
  const json = useJson(before.input);
  const [priority, setPriority] = useState(String(before.priority));
  const [delay, setDelay] = useState("");
  const isMoved = delay.trim() !== "";
  const isRanked = priority !== "" && Number(priority) !== before.priority;
  const undoing: Changes = {
    ...(json.isChanged ? { input: before.input } : {}),
    ...(isRanked ? { priority: before.priority } : {}),
    ...(isMoved ? { runAt: before.runAt } : {}),
  };
  const edits = (): Changes => ({
    ...(json.isChanged ? { input: parseExact(json.text) } : {}),
    ...(isRanked ? { priority: Number(priority) } : {}),
    ...(isMoved ? { delay: delay.trim() } : {}),
  });
  const run = async (reason: string): Promise<void> => {
    await change(before.id, edits(), reason);
    tell("The job was changed.", "good", async () => {
      await change(before.id, undoing, "undone");
      done();
    });
    done();
  };
  return (
    <Confirm
      title={`Edit ${job.name}`}
      action="Save"
      isWide
      isReady={json.problem === null && priority !== "" && Object.keys(undoing).length > 0}
      run={run}
      close={close}
    >
      <InputField json={json} />
      <div class="fields">
        <PriorityField value={priority} set={setPriority} />
        <label class="field">
          Due from now in (empty: stays)
          <input value={delay} placeholder="10m" onInput={(event) => setDelay(event.currentTarget.value)} />
        </label>
      </div>
    </Confirm>
  );
}

/** A new job like this one. It has its own id, so it runs regardless of this one's outcome. */
export function CopyJob({ job, close }: { readonly job: Job; close(): void }): VNode {
  const json = useJson(job.input);
  const [priority, setPriority] = useState(String(job.priority));
  const run = async (reason: string): Promise<void> => {
    const body = {
      name: job.name,
      input: parseExact(json.text),
      tags: job.tags,
      priority: Number(priority),
      ...because(reason),
    };
    const { id } = await request<{ id: string }>("jobs", { method: "POST", body });
    tell("A copy was enqueued.");
    go(jobPath(id));
  };
  return (
    <Confirm
      title={`Enqueue a copy of ${job.name}`}
      action="Enqueue"
      isWide
      isReady={json.problem === null && priority !== ""}
      run={run}
      close={close}
    >
      <p>The copy has its own id. This job stays as it is.</p>
      <InputField json={json} />
      <PriorityField value={priority} set={setPriority} />
    </Confirm>
  );
}
