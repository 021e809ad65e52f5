import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Schedule } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { count, inZone } from "../format.ts";
import { because, Confirm } from "../parts/dialog.tsx";
import { Problem } from "../parts/problem.tsx";
import { tell } from "../parts/toasts.tsx";
import { fromField, ownZone, toField } from "./ledger-time.ts";
import { schedulePath } from "./schedule-rule.ts";

interface Planned {
  readonly count: number;
  readonly times: readonly string[];
}

interface Props {
  readonly schedule: Schedule;
  close(): void;
  done(): void;
}

function minuteOf(ms: number): number {
  return Math.floor(ms / 60_000) * 60_000;
}

const quietMs = 300;
const mostShown = 20;

/** Plans what a span of the past skipped, after showing what that is. */
export function Backfill({ schedule, close, done }: Props): VNode {
  const itsZone = schedule.spec.timezone ?? "UTC";
  const [zone, setZone] = useState(itsZone);
  const [from, setFrom] = useState(() => toField(minuteOf(Date.now() - 86_400_000), itsZone));
  const [to, setTo] = useState(() => toField(minuteOf(Date.now()), itsZone));
  const instant = (text: string): string | null => fromField(text, zone);
  const preview = usePreview(schedule.key, instant(from), instant(to));
  /** The same moments, as other clocks show them. */
  const goBy = (next: string): void => {
    const moved = (text: string): string => toField(Date.parse(instant(text) ?? ""), next);
    if (instant(from) !== null) setFrom(moved(from));
    if (instant(to) !== null) setTo(moved(to));
    setZone(next);
  };
  const isPlan = preview !== null && !(preview instanceof Error);
  const run = async (reason: string): Promise<void> => {
    const body = { from: instant(from), to: instant(to), ...because(reason) };
    const path = `${schedulePath(schedule.key)}/backfill`;
    const { count: planned } = await request<Planned>(path, { method: "POST", body });
    tell(`${count(planned)} ${planned === 1 ? "occurrence was" : "occurrences were"} planned.`);
    done();
  };
  return (
    <Confirm
      title={`Backfill ${schedule.key}`}
      action={isPlan ? `Plan ${count(preview.count)}` : "Plan"}
      isReady={isPlan && preview.count > 0}
      run={run}
      close={close}
    >
      <p>Plans what was skipped in a span of the past. What has already fired is not planned again.</p>
      <div class="fields moments">
        <label class="field">
          From
          <input type="datetime-local" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        </label>
        <label class="field">
          To
          <input type="datetime-local" value={to} onInput={(event) => setTo(event.currentTarget.value)} />
        </label>
        <label class="field">
          By the clocks of
          <select value={zone} onChange={(event) => goBy(event.currentTarget.value)}>
            {[...new Set([itsZone, ownZone, "UTC"])].map((one) => (
              <option key={one} value={one}>
                {one}
                {one === itsZone ? ", the schedule's" : one === ownZone ? ", yours" : ""}
              </option>
            ))}
          </select>
        </label>
      </div>
      <div role="status">
        {preview instanceof Error && <Problem error={preview} />}
        {preview === null && <p class="soft">Looking…</p>}
        {isPlan && <Plan plan={preview} zone={zone} />}
      </div>
    </Confirm>
  );
}

function usePreview(key: string, from: string | null, to: string | null): Planned | Error | null {
  const [preview, setPreview] = useState<Planned | Error | null>(null);
  useEffect(() => {
    setPreview(null);
    if (from === null || to === null) return undefined;
    const stop = new AbortController();
    const show = (answer: Planned | Error): void => {
      if (!stop.signal.aborted) setPreview(answer);
    };
    const timer = setTimeout(() => {
      const body = { from, to, dryRun: true };
      const path = `${schedulePath(key)}/backfill`;
      request<Planned>(path, { method: "POST", body, signal: stop.signal }).then(show, show);
    }, quietMs);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, from, to]);
  return preview;
}

function Plan({ plan, zone }: { readonly plan: Planned; readonly zone: string }): VNode {
  if (plan.count === 0) return <p>Nothing was skipped in that span.</p>;
  return (
    <>
      <p>
        {count(plan.count)} would be planned{plan.count > mostShown ? `; the first ${mostShown}:` : ":"}
      </p>
      <ol class="times small">
        {plan.times.slice(0, mostShown).map((at) => (
          <li key={at}>
            {inZone(at, zone)} <span class="soft">{zone}</span>
          </li>
        ))}
      </ol>
    </>
  );
}
