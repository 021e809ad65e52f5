import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Definitions, Schedule } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { useQuery } from "../api/use-query.ts";
import { useRole } from "../identity.ts";
import { because, Confirm } from "../parts/dialog.tsx";
import { tell } from "../parts/toasts.tsx";
import { visible } from "../parts/visible.ts";
import { go, jobPath } from "../router.ts";
import { Backfill } from "./backfill.tsx";
import { EditRule } from "./edit-rule.tsx";
import { schedulePath } from "./schedule-rule.ts";

type Turn = "pause" | "resume";
type Asked = Turn | "trigger" | "backfill" | "edit" | "remove" | null;

interface Props {
  readonly schedule: Schedule;
  /** Only what one does from the list. */
  readonly isShort?: boolean;
  refresh(): void;
}

export function ScheduleControls({ schedule, isShort = false, refresh }: Props): VNode | null {
  const [asked, setAsked] = useState<Asked>(null);
  const may = useRole();
  if (!may("operate")) return null;
  const close = (): void => setAsked(null);
  const turn: Turn = schedule.paused ? "resume" : "pause";
  return (
    <div class="row" role="group" aria-label={isShort ? `Actions for ${visible(schedule.key)}` : "Actions"}>
      <button type="button" onClick={() => setAsked("trigger")}>
        Run once…
      </button>
      <button type="button" onClick={() => setAsked(turn)}>
        {schedule.paused ? "Resume…" : "Pause…"}
      </button>
      {!isShort && (
        <button type="button" onClick={() => setAsked("backfill")}>
          Backfill…
        </button>
      )}
      {!isShort && may("admin") && (
        <>
          <button type="button" onClick={() => setAsked("edit")}>
            Edit the rule…
          </button>
          <button type="button" class="danger" onClick={() => setAsked("remove")}>
            Remove…
          </button>
        </>
      )}
      {asked === "backfill" && <Backfill schedule={schedule} close={close} done={refresh} />}
      {asked === "edit" && <EditRule schedule={schedule} close={close} done={refresh} />}
      {asked === "trigger" && <Trigger schedule={schedule} close={close} />}
      {asked === "remove" && <Remove schedule={schedule} close={close} done={refresh} />}
      {(asked === "pause" || asked === "resume") && (
        <Pause schedule={schedule} turn={asked} close={close} done={refresh} />
      )}
    </div>
  );
}

interface DialogProps {
  readonly schedule: Schedule;
  close(): void;
}

function post<T>(key: string, what: string, reason: string): Promise<T> {
  return request<T>(`${schedulePath(key)}/${what}`, { method: "POST", body: because(reason) });
}

function Pause({
  schedule: { key },
  turn,
  close,
  done,
}: DialogProps & { readonly turn: Turn; done(): void }): VNode {
  const isPause = turn === "pause";
  const run = async (reason: string): Promise<void> => {
    await post(key, turn, reason);
    tell(isPause ? `${key} is paused.` : `${key} fires again.`, "good", async () => {
      await post(key, isPause ? "resume" : "pause", "undone");
      done();
    });
    done();
  };
  return (
    <Confirm
      title={isPause ? `Pause ${key}?` : `Resume ${key}?`}
      action={isPause ? "Pause" : "Resume"}
      run={run}
      close={close}
    >
      <p>
        {isPause
          ? "Nothing fires until someone resumes it. What it skips is kept in the ledger."
          : "It fires again from its next time on. What the pause skipped stays skipped; a backfill can plan it."}
      </p>
    </Confirm>
  );
}

function Trigger({ schedule: { key, name }, close }: DialogProps): VNode {
  const run = async (reason: string): Promise<void> => {
    const { id } = await post<{ id: string }>(key, "trigger", reason);
    tell("Enqueued.");
    go(jobPath(id));
  };
  return (
    <Confirm title={`Run ${name} once, now?`} action="Run once" run={run} close={close}>
      <p>
        The job is enqueued in addition to its regular times. It is not an occurrence: the ledger does not
        count it.
      </p>
    </Confirm>
  );
}

/** What the server puts in the place of what it masks: that must not be written back. */
const mask = "[redacted]";

/**
 * Whether all of a schedule is known here, so that it can be made again as it was. A limit would be counted from zero again, and this
 * server cannot make the job of a definition that it does not have.
 */
function canBeMadeAgain(schedule: Schedule, known: Definitions | null): boolean {
  const { spec, name, unreadable } = schedule;
  if (unreadable !== undefined || spec.limit !== undefined) return false;
  return (
    known?.definitions.some((one) => one.name === name) === true && !JSON.stringify(schedule).includes(mask)
  );
}

async function makeAgain(schedule: Schedule): Promise<void> {
  const { key, spec, name: job, input, priority, tags, expireInMs, attempts, paused } = schedule;
  const expireIn = expireInMs === null ? {} : { expireIn: expireInMs };
  const body = { spec, job, input, priority, tags, attempts, ...expireIn, reason: "undone" };
  await request(schedulePath(key), { method: "PUT", body });
  if (paused) await post(key, "pause", "undone");
}

function Remove({ schedule, close, done }: DialogProps & { done(): void }): VNode {
  const { key } = schedule;
  const known = useQuery<Definitions>("definitions");
  const canUndo = canBeMadeAgain(schedule, known.data);
  const undo = async (): Promise<void> => {
    await makeAgain(schedule);
    go(schedulePath(key));
    done();
  };
  const run = async (reason: string): Promise<void> => {
    await request(schedulePath(key), { method: "DELETE", query: because(reason) });
    tell(`${key} was removed.`, "good", canUndo ? undo : null);
    go("schedules");
  };
  return (
    <Confirm title={`Remove ${key}?`} action="Remove" isDanger run={run} close={close}>
      <p>
        It no longer fires. Its jobs and its ledger stay. A node whose code declares it creates it again at
        its next start.{" "}
        {canUndo
          ? "You can undo this right afterwards: it is then made again as it was."
          : "This cannot be undone here."}
      </p>
    </Confirm>
  );
}
