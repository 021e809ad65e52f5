import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RulePreview, Schedule } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { because, Confirm } from "../parts/dialog.tsx";
import { tell } from "../parts/toasts.tsx";
import { NextTimes } from "./next-times.tsx";
import { schedulePath } from "./schedule-rule.ts";

interface Props {
  readonly schedule: Schedule;
  close(): void;
  done(): void;
}

type Spec = Schedule["spec"];

const quietMs = 250;
const misfires = ["once", "skip", "all"] as const;
const overlaps = ["allow", "skip", "queue-one", "replace"] as const;

/** Changes when a schedule fires, and shows the next ten times while one types. Its job stays. */
export function EditRule({ schedule, close, done }: Props): VNode {
  const [spec, setSpec] = useState<Spec>(schedule.spec);
  const preview = useRulePreview(spec);
  const put = (spec_: Spec, reason: string): Promise<unknown> =>
    request(schedulePath(schedule.key), { method: "PATCH", body: { spec: spec_, ...because(reason) } });
  const run = async (reason: string): Promise<void> => {
    await put(spec, reason);
    tell(`The rule of ${schedule.key} was changed.`, "good", async () => {
      await put(schedule.spec, "undone");
      done();
    });
    done();
  };
  return (
    <Confirm
      title={`When ${schedule.key} fires`}
      action="Save"
      isWide
      isReady={preview !== null && !(preview instanceof Error) && preview.times.length > 0}
      run={run}
      close={close}
    >
      <div class="fields">
        <When spec={spec} set={setSpec} />
        <Choice
          label="Misfire: times missed during downtime"
          name="misfire"
          of={misfires}
          spec={spec}
          set={setSpec}
        />
        <Choice
          label="Overlap: the previous job is not done"
          name="overlap"
          of={overlaps}
          spec={spec}
          set={setSpec}
        />
      </div>
      <div class="preview" role="status">
        <NextTimes preview={preview} timezone={spec.timezone ?? "UTC"} />
      </div>
      <p class="small soft">
        A node whose code declares this schedule otherwise sets it back at its next start, unless its conflict
        policy keeps the store's.
      </p>
    </Confirm>
  );
}

interface FieldProps {
  readonly spec: Spec;
  set(spec: Spec): void;
}

function When({ spec, set }: FieldProps): VNode {
  if (spec.at !== undefined)
    return (
      <label class="field">
        Once, at (UTC)
        <input value={spec.at} onInput={(event) => set({ ...spec, at: event.currentTarget.value.trim() })} />
      </label>
    );
  if (spec.cron === undefined)
    return (
      <label class="field">
        Every
        <input
          value={typeof spec.every === "number" ? `${spec.every}ms` : (spec.every ?? "")}
          placeholder="15m"
          onInput={(event) => set({ ...spec, every: event.currentTarget.value.trim() })}
        />
      </label>
    );
  return (
    <>
      <label class="field">
        Cron
        <input
          class="mono"
          value={spec.cron}
          spellcheck={false}
          onInput={(event) => set({ ...spec, cron: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        Time zone
        <input
          value={spec.timezone ?? ""}
          placeholder="UTC"
          list="zones"
          onInput={(event) => set(withZone(spec, event.currentTarget.value.trim()))}
        />
        <datalist id="zones">
          {Intl.supportedValuesOf("timeZone").map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </label>
    </>
  );
}

function withZone({ timezone: _, ...spec }: Spec, timezone: string): Spec {
  return timezone === "" ? spec : { ...spec, timezone };
}

interface ChoiceProps extends FieldProps {
  readonly label: string;
  readonly name: "misfire" | "overlap";
  readonly of: readonly string[];
}

function Choice({ label, name, of, spec, set }: ChoiceProps): VNode {
  return (
    <label class="field">
      {label}
      <select
        value={spec[name] ?? of[0]}
        onChange={(event) => set({ ...spec, [name]: event.currentTarget.value })}
      >
        {of.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Asked once typing pauses. What was there stays until the answer comes. */
function useRulePreview(spec: Spec): RulePreview | Error | null {
  const [preview, setPreview] = useState<RulePreview | Error | null>(null);
  const rule = JSON.stringify(spec);
  useEffect(() => {
    const stop = new AbortController();
    const show = (answer: RulePreview | Error): void => {
      if (!stop.signal.aborted) setPreview(answer);
    };
    const timer = setTimeout(() => {
      const body = { spec, count: 10 };
      request<RulePreview>("schedules/preview", { method: "POST", body, signal: stop.signal }).then(
        show,
        show,
      );
    }, quietMs);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [rule]);
  return preview;
}
