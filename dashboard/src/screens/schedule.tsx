import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RulePreview, Schedule } from "../api/answers.ts";
import { isUnknown, request } from "../api/request.ts";
import { useQuery } from "../api/use-query.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { NotFound } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Tree } from "../parts/tree.tsx";
import { jobPath, pathTo } from "../router.ts";
import { Ledger } from "./ledger.tsx";
import { NextTimes } from "./next-times.tsx";
import { ScheduleControls } from "./schedule-controls.tsx";
import { meaningOf, ruleOf, schedulePath } from "./schedule-rule.ts";

export function ScheduleScreen({ id }: { readonly id: string }): VNode {
  const schedule = useQuery<Schedule>(schedulePath(id), {}, { everyMs: 5_000 });
  if (schedule.data === null && isUnknown(schedule.error))
    return (
      <NotFound heading="No such schedule" title="There is no schedule with this key" id={id}>
        <span>
          It was never declared, or somebody removed it. Its jobs and the audit log are still there.
        </span>
        <span class="row">
          <a href="schedules">To all schedules</a>
          <a href={pathTo("jobs", { schedule: id })}>Its jobs</a>
        </span>
      </NotFound>
    );
  return (
    <Answer of={schedule}>
      {(data) => (
        <>
          <div class="page-head">
            <div class="title">
              <h1>
                <Text value={data.key} />
              </h1>
              <p class="soft small">
                <code>
                  <Text value={ruleOf(data)} />
                </code>{" "}
                <Text value={meaningOf(data) ?? ""} />
              </p>
            </div>
            {data.paused && <Badge tone="warn">❚❚ paused</Badge>}
          </div>
          {data.unreadable !== undefined && (
            <div class="notice bad">
              <span>
                No planner can fire it: <Text value={data.unreadable} />
              </span>
            </div>
          )}
          <ScheduleControls schedule={data} refresh={schedule.refresh} />
          <Ledger scheduleKey={id} zone={data.spec.timezone ?? "UTC"} madeAt={data.createdAt} />
          <div class="columns">
            <Next schedule={data} />
            <section class="panel stack" aria-labelledby="rule">
              <h2 id="rule">Rule and job</h2>
              <Tree value={data.spec} name="rule" />
              <Tree value={data.input} name={`input of ${data.name}`} />
              <p class="row small">
                <a href={pathTo("jobs", { schedule: data.key })}>All its jobs</a>
                {data.lastJobId !== null && <a href={jobPath(data.lastJobId)}>The last one</a>}
              </p>
            </section>
          </div>
        </>
      )}
    </Answer>
  );
}

/** The next times, fetched again when the rule changes or the first of them is over. */
function Next({ schedule }: { readonly schedule: Schedule }): VNode {
  const [preview, setPreview] = useState<RulePreview | Error | null>(null);
  const rule = JSON.stringify(schedule.spec);
  useEffect(() => {
    if (schedule.unreadable !== undefined) return;
    const body = { spec: schedule.spec, count: 10 };
    request<RulePreview>("schedules/preview", { method: "POST", body }).then(setPreview, setPreview);
  }, [rule, schedule.nextAt]);
  return (
    <section class="panel stack" aria-labelledby="next">
      <h2 id="next">Next times</h2>
      {schedule.paused && <p class="small">It is paused: none of these fires until it is resumed.</p>}
      <NextTimes preview={preview} timezone={schedule.spec.timezone ?? "UTC"} />
    </section>
  );
}
