import type { VNode } from "preact";
import type { JobSummary } from "../api/answers.ts";
import { count } from "../format.ts";
import { useRole } from "../identity.ts";
import type { Filter } from "./filter.ts";
import { aboutActions, type JobAction } from "./job-actions.ts";

interface Props {
  readonly filter: Filter;
  readonly selected: readonly JobSummary[];
  clear(): void;
  act(action: JobAction, isAll: boolean): void;
}

const order: readonly JobAction[] = ["redrive", "run-now", "priority", "cancel", "delete"];

/** What can be done to the selected jobs, or to all that match. It stays at the bottom of what is seen: no row moves for it, and it is always in reach. */
export function Selection({ filter, selected, clear, act }: Props): VNode | null {
  const may = useRole();
  if (!may("operate")) return null;
  const isAll = selected.length === 0;
  // "All jobs" is never meant: a filter or a selection comes first.
  if (isAll && Object.keys(filter).length === 0) return null;
  const states = isAll ? [filter["state"]] : selected.map(({ state }) => state);
  const fits = (action: JobAction): boolean =>
    may(aboutActions[action].needs) &&
    states.some((state) => state === undefined || (aboutActions[action].states as string[]).includes(state));
  return (
    <div class="actions row" role="group" aria-label="Actions">
      <strong class="small">{isAll ? "All that match:" : `${count(selected.length)} selected:`}</strong>
      {order.filter(fits).map((action) => (
        <button
          key={action}
          type="button"
          class={aboutActions[action].isDanger ? "danger" : ""}
          onClick={() => act(action, isAll)}
        >
          {aboutActions[action].title}…
        </button>
      ))}
      {!isAll && (
        <button type="button" class="plain" onClick={clear}>
          Clear the selection
        </button>
      )}
    </div>
  );
}
