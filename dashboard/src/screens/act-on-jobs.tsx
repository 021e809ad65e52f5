import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { JobSummary } from "../api/answers.ts";
import { count } from "../format.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Problem } from "../parts/problem.tsx";
import { Text } from "../parts/text.tsx";
import { tell } from "../parts/toasts.tsx";
import { cut, visible } from "../parts/visible.ts";
import { type Filter, filterWords, wordName, wordValue } from "./filter.ts";
import {
  aboutActions,
  actOnAll,
  actOnEach,
  countAll,
  type JobAction,
  type Progress,
  putPrioritiesBack,
  tallyText,
} from "./job-actions.ts";

export type Target = { readonly jobs: readonly Chosen[] } | { readonly filter: Filter };

type Chosen = Pick<JobSummary, "id" | "name" | "delivery" | "state" | "priority">;

interface Props {
  readonly action: JobAction;
  readonly target: Target;
  /** What the jobs have in common, where the title of the dialog cannot tell by itself. */
  readonly about?: string;
  close(): void;
  done(): void;
}

/** Counts first, asks, acts, and shows how far it has come. */
export function ActOnJobs({ action, target, about, close, done }: Props): VNode {
  const { many, once, isCounted, error } = useCount(action, target);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [priority, setPriority] = useState("0");
  const stopping = useRef(new AbortController());
  const { title, ask, effect, isDanger } = aboutActions[action];
  const isWhole = /^-?\d{1,9}$/.test(priority);
  const run = async (reason: string): Promise<void> => {
    const order = { action, reason, priority: Number(priority) };
    const { signal } = stopping.current;
    const end =
      "jobs" in target
        ? await actOnEach(order, idsOf(target.jobs), setProgress, signal)
        : await actOnAll(order, target.filter, setProgress, signal);
    const hasFailed = Object.keys(end.tally).some((outcome) => outcome.startsWith("failed"));
    const stopped = signal.aborted ? " Stopped: the rest is as it was." : "";
    const undo = async (): Promise<void> => {
      if ("jobs" in target) await putPrioritiesBack(target.jobs);
      done();
    };
    const canUndo = action === "priority" && "jobs" in target;
    tell(`${title}: ${tallyText(end.tally)}.${stopped}`, hasFailed ? "bad" : "good", canUndo ? undo : null);
    done();
  };
  return (
    <Confirm
      title={isCounted ? ask(whichOf(target, many)) : `${title}…`}
      action={isCounted ? `${title} (${count(many)})` : title}
      isDanger={isDanger || once > 0}
      isReady={isCounted && many > 0 && (action !== "priority" || isWhole)}
      run={run}
      stop={() => stopping.current.abort()}
      close={close}
    >
      {"filter" in target && <Terms filter={target.filter} />}
      {about !== undefined && (
        <p>
          <Text value={about} most={300} />
        </p>
      )}
      <p>{effect}</p>
      {once > 0 && <p class="bad">{secondRun(once, many)}</p>}
      {!isCounted && error === null && (
        <p class="soft" role="status">
          Counting: {count(many)} so far.
        </p>
      )}
      {isCounted && many === 0 && <p class="soft">None of them is in a state that this changes.</p>}
      {error !== null && <Problem error={error} what="They could not be counted." />}
      {action === "priority" && (
        <label class="field">
          Priority, a whole number; higher runs first
          <input
            inputMode="numeric"
            value={priority}
            aria-invalid={!isWhole}
            onInput={(event) => setPriority(event.currentTarget.value)}
          />
        </label>
      )}
      {progress !== null && <HowFar progress={progress} many={many} />}
    </Confirm>
  );
}

/** `5 jobs`, `32 dead jobs of import-feed`: what all of them have in common. */
function whichOf(target: Target, many: number): string {
  const shared = (word: "state" | "name"): string | undefined => {
    const values = new Set("jobs" in target ? target.jobs.map((job) => job[word]) : [target.filter[word]]);
    return values.size === 1 ? [...values][0] : undefined;
  };
  const [state, name] = [shared("state"), shared("name")];
  const what = `${count(many)} ${state === undefined ? "" : `${state} `}${many === 1 ? "job" : "jobs"}`;
  return name === undefined ? what : `${what} of ${cut(visible(name), 60)}`;
}

/** By what they were chosen: all of it, as what is not seen in the list is changed, too. */
function Terms({ filter }: { readonly filter: Filter }): VNode {
  return (
    <ul class="row small plain-list" aria-label="All jobs with">
      {filterWords.map((word) => {
        const value = filter[word];
        return value === undefined ? null : (
          <li key={word} class="chip">
            <span>
              {wordName(word)}: <Text value={wordValue(value)} most={80} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function idsOf(chosen: readonly Chosen[]): string[] {
  return chosen.map(({ id }) => id);
}

/** What is at stake where an outcome is unknown, and no retry was promised. */
function secondRun(once: number, many: number): string {
  const [who, they] =
    many === 1
      ? ["It is", "it"]
      : [once === many ? "They are" : `${count(once)} of them ${once === 1 ? "is" : "are"}`, "they"];
  return `${who} at-most-once: ${they} may have taken effect already, and may then do so a second time. Check before you redrive.`;
}

interface Counted {
  readonly many: number;
  /** How many of them are at-most-once and would be run again. */
  readonly once: number;
  readonly isCounted: boolean;
  readonly error: Error | null;
}

const atMostOnce = "at-most-once";

function useCount(action: JobAction, target: Target): Counted {
  const [many, setMany] = useState("jobs" in target ? target.jobs.length : 0);
  const [once, setOnce] = useState("jobs" in target ? target.jobs.filter(isOnce).length : 0);
  const [isCounted, setCounted] = useState("jobs" in target);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    if ("jobs" in target) return;
    const { filter } = target;
    const count = async (): Promise<void> => {
      const matched = await countAll(action, filter, setMany);
      const { delivery = atMostOnce } = filter;
      if (action === "redrive" && delivery === atMostOnce)
        setOnce(await countAll(action, { ...filter, delivery }, () => {}));
      setMany(matched);
      setCounted(true);
    };
    count().catch(setError);
  }, []);
  return { many, once: action === "redrive" ? once : 0, isCounted, error };
}

function isOnce({ delivery }: Chosen): boolean {
  return delivery === atMostOnce;
}

function HowFar({ progress, many }: { readonly progress: Progress; readonly many: number }): VNode {
  return (
    <div role="status">
      <progress max={Math.max(many, 1)} value={progress.done} aria-label="Progress" />
      <p class="small soft number">
        {count(progress.done)} of {count(many)}
      </p>
    </div>
  );
}
