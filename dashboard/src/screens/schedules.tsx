import type { VNode } from "preact";
import type { Occurrence, Schedule } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { timeOfDay } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Empty } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { Time } from "../parts/time.tsx";
import { DayStrip, stripHours, useDayOf } from "./day-strip.tsx";
import { fateOf } from "./fate.ts";
import { useHour } from "./ledger-clock.ts";
import { ScheduleControls } from "./schedule-controls.tsx";
import { meaningOf, ruleOf, schedulePath } from "./schedule-rule.ts";

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
            <ScheduleTable schedules={list} refresh={schedules.refresh} />
          )
        }
      </Answer>
    </>
  );
}

function ScheduleTable({
  schedules,
  refresh,
}: {
  readonly schedules: readonly Schedule[];
  refresh(): void;
}): VNode {
  const now = useHour();
  const marks = stripHours(now).filter((_, place) => place % 6 === 0);
  return (
    <div class="table-wrap">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Schedule</th>
            <th scope="col">Next</th>
            <th scope="col">Last</th>
            <th scope="col">
              The last 24 hours, by your clock
              <span class="strip-marks small" aria-hidden="true">
                {marks.map((at) => (
                  <span key={at}>{timeOfDay(at)}</span>
                ))}
              </span>
            </th>
            <th scope="col">
              <span class="hidden-label">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {schedules.map((schedule) => (
            <ScheduleRow key={schedule.key} schedule={schedule} now={now} refresh={refresh} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly schedule: Schedule;
  readonly now: number;
  refresh(): void;
}

function ScheduleRow({ schedule, now, refresh }: RowProps): VNode {
  const { key, name, spec, paused, unreadable, nextAt } = schedule;
  const meaning = meaningOf(schedule);
  const answer = useDayOf(schedulePath(key), now);
  return (
    <tr data-row>
      <td class="head">
        <a href={schedulePath(key)}>
          <Text value={key} most={60} />
        </a>{" "}
        <span class="small soft">
          <Text value={name} most={60} />
        </span>
        <br />
        <code>
          <Text value={ruleOf(schedule)} most={60} />
        </code>{" "}
        {meaning !== null && (
          <span class="small soft">
            <Text value={meaning} most={120} />
          </span>
        )}
      </td>
      <td data-label="Next">
        {paused ? (
          <Badge tone="warn">❚❚ paused</Badge>
        ) : unreadable === undefined ? (
          <Time at={nextAt} none="never again" />
        ) : (
          <Badge tone="bad">✕ unreadable</Badge>
        )}
      </td>
      <td data-label="Last">
        <LastOutcome path={schedulePath(key)} day={answer.data?.occurrences ?? null} />
      </td>
      <td class="wide">
        <DayStrip path={schedulePath(key)} zone={spec.timezone ?? "UTC"} now={now} answer={answer} />
      </td>
      <td>
        <ScheduleControls schedule={schedule} refresh={refresh} isShort />
      </td>
    </tr>
  );
}

/** The fate of the latest occurrence, even if it was more than a day ago. */
function LastOutcome({
  path,
  day,
}: {
  readonly path: string;
  readonly day: readonly Occurrence[] | null;
}): VNode | null {
  const isOlder = day !== null && day.length === 0;
  const older = useQuery<{ occurrences: readonly Occurrence[] }>(
    isOlder ? `${path}/occurrences` : null,
    { from: "31d", limit: 1 },
    { everyMs: 60_000 },
  );
  const last = day?.at(-1) ?? (isOlder ? older.data?.occurrences.at(-1) : undefined);
  if (last === undefined) return day === null ? null : <span class="soft small">none yet</span>;
  const { tone, sign, word } = fateOf(last);
  return (
    <>
      <Badge tone={tone}>{`${sign.trim() === "" ? "✓" : sign} ${word.split(":")[0]}`}</Badge>{" "}
      <span class="small soft">
        <Time at={last.until ?? last.fireAt} />
      </span>
    </>
  );
}
