import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JobStory } from "../api/answers.ts";
import { useRole } from "../identity.ts";
import { go } from "../router.ts";
import { ActOnJobs } from "./act-on-jobs.tsx";
import { CopyJob, EditJob } from "./edit-job.tsx";
import { aboutActions, type JobAction } from "./job-actions.ts";

type Job = JobStory["job"];

const offered: readonly JobAction[] = ["redrive", "run-now", "cancel", "delete"];

/** What can be done with a job as it stands. */
export function JobControls({ job, refresh }: { readonly job: Job; refresh(): void }): VNode | null {
  const [asked, setAsked] = useState<JobAction | "edit" | "copy" | null>(null);
  const may = useRole();
  if (!may("operate")) return null;
  const close = (): void => setAsked(null);
  const fits = (action: JobAction): boolean =>
    may(aboutActions[action].needs) && aboutActions[action].states.includes(job.state);
  // A prominent button must not invite a redrive of a job whose outcome is unknown.
  const style = (action: JobAction): string =>
    aboutActions[action].isDanger ? "danger" : action === "redrive" && job.state === "dead" ? "primary" : "";
  return (
    <div class="row" role="group" aria-label="Actions">
      {offered.filter(fits).map((action) => (
        <button key={action} type="button" class={style(action)} onClick={() => setAsked(action)}>
          {aboutActions[action].title}…
        </button>
      ))}
      {(job.state === "waiting" || job.state === "blocked") && (
        <button type="button" onClick={() => setAsked("edit")}>
          Edit…
        </button>
      )}
      <button type="button" onClick={() => setAsked("copy")}>
        Edit and enqueue a copy…
      </button>
      {asked === "edit" && <EditJob job={job} close={close} done={refresh} />}
      {asked === "copy" && <CopyJob job={job} close={close} />}
      {asked !== null && asked !== "edit" && asked !== "copy" && (
        <ActOnJobs
          action={asked}
          target={{ jobs: [job] }}
          about={`Job ${job.id}`}
          close={close}
          done={() => (asked === "delete" ? go("jobs") : refresh())}
        />
      )}
    </div>
  );
}
