import type { VNode } from "preact";
import type { Schedule } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { count } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { DayStrip } from "./day-strip.tsx";

export function schedulePath(key: string): string {
  return `schedules/${encodeURIComponent(key)}`;
}

/** The rule in a few words. */
export function ruleOf({ spec }: Pick<Schedule, "spec">): string {
  if (spec.cron !== undefined) return `${spec.cron}${spec.timezone === undefined ? "" : ` ${spec.timezone}`}`;
  if (spec.every !== undefined)
    return `every ${typeof spec.every === "number" ? `${spec.every} ms` : spec.every}`;
  return spec.at === undefined ? "unreadable" : `once, at ${spec.at}`;
}

/** Every schedule with its next time and its last day: what ran, what did not, and why. */
export function Schedules(): VNode {
  const schedules = useQuery<{ schedules: Schedule[] }>("schedules", {}, { everyMs: 5_000 });
  return (
    <>
      <div class="page-head">
        <h1>Schedules</h1>
      </div>
      <Answer of={schedules}>
        {({ schedules: list }) =>
          list.length === 0 ? (
            <Empty title="No schedules yet">
              <span>
                Declare one in your code:{" "}
                <code>app.schedule("nightly", {'{ cron: "0 3 * * *" }'}, backup)</code>
              </span>
            </Empty>
          ) : (
            <ScheduleTable schedules={list} />
          )
        }
      </Answer>
    </>
  );
}

function ScheduleTable({ schedules }: { readonly schedules: readonly Schedule[] }): VNode {
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Schedule</th>
            <th scope="col">Rule</th>
            <th scope="col">Next</th>
            <th scope="col" class="number">
              Fired
            </th>
            <th scope="col">The latest of the last day, oldest first</th>
          </tr>
        </thead>
        <tbody>
          {schedules.map((schedule) => (
            <tr key={schedule.key} data-row>
              <td class="head">
                <a href={schedulePath(schedule.key)}>
                  <Text value={schedule.key} most={60} />
                </a>
                <br />
                <span class="small soft">
                  <Text value={schedule.name} most={60} />
                </span>
              </td>
              <td class="mono">
                <Text value={ruleOf(schedule)} most={60} />
              </td>
              <td data-label="Next">
                {schedule.paused ? (
                  <Badge tone="warn">❚❚ paused</Badge>
                ) : schedule.unreadable === undefined ? (
                  <Time at={schedule.nextAt} none="never again" />
                ) : (
                  <Badge tone="bad">✕ unreadable</Badge>
                )}
              </td>
              <td class="number" data-label="Fired">
                {count(schedule.fired)}
              </td>
              <td class="wide">
                <DayStrip scheduleKey={schedule.key} zone={schedule.spec.timezone ?? "UTC"} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
