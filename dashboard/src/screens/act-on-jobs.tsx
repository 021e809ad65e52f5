import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count, jobs } from "../format.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Problem } from "../parts/problem.tsx";
import { tell } from "../parts/toasts.tsx";
import type { Filter } from "./filter.ts";
import {
  aboutActions,
  actOnAll,
  actOnEach,
  countAll,
  type JobAction,
  type Progress,
  tallyText,
} from "./job-actions.ts";

export type Target = { readonly ids: readonly string[] } | { readonly filter: Filter };

interface Props {
  readonly action: JobAction;
  readonly target: Target;
  close(): void;
  done(): void;
}

/** Counts first, asks, acts, and shows how far it has come. */
export function ActOnJobs({ action, target, close, done }: Props): VNode {
  const { many, isCounted, error } = useCount(action, target);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [priority, setPriority] = useState("0");
  const stopping = useRef(new AbortController());
  const { title, effect, isDanger } = aboutActions[action];
  const isWhole = /^-?\d{1,9}$/.test(priority);
  const run = async (reason: string): Promise<void> => {
    const order = { action, reason, priority: Number(priority) };
    const { signal } = stopping.current;
    const end =
      "ids" in target
        ? await actOnEach(order, target.ids, setProgress, signal)
        : await actOnAll(order, target.filter, setProgress, signal);
    const hasFailed = Object.keys(end.tally).some((outcome) => outcome.startsWith("failed"));
    const stopped = signal.aborted ? " Stopped: the rest is as it was." : "";
    tell(`${title}: ${tallyText(end.tally)}.${stopped}`, hasFailed ? "bad" : "good");
    done();
  };
  return (
    <Confirm
      title={isCounted ? `${title}: ${jobs(many)}?` : `${title}…`}
      action={isCounted ? `${title} (${count(many)})` : title}
      isDanger={isDanger}
      isReady={isCounted && many > 0 && (action !== "priority" || isWhole)}
      run={run}
      stop={() => stopping.current.abort()}
      close={close}
    >
      <p>{effect}</p>
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

function useCount(
  action: JobAction,
  target: Target,
): { many: number; isCounted: boolean; error: Error | null } {
  const [many, setMany] = useState("ids" in target ? target.ids.length : 0);
  const [isCounted, setCounted] = useState("ids" in target);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    if ("ids" in target) return;
    countAll(action, target.filter, setMany).then((matched) => {
      setMany(matched);
      setCounted(true);
    }, setError);
  }, []);
  return { many, isCounted, error };
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
