import type { VNode } from "preact";
import type { Occurrence } from "../api/answers.ts";
import { jobPath } from "../router.ts";
import { accountOf, fateOf } from "./fate.ts";

interface CellProps {
  readonly cell: Occurrence;
  /** The schedule's time zone. */
  readonly zone: string;
  readonly isChosen: boolean;
  choose(): void;
}

export function Cell({ cell, zone, isChosen, choose }: CellProps): VNode {
  const { tone, sign } = fateOf(cell);
  const title = accountOf(cell, zone);
  return (
    <button
      type="button"
      class={cell.count > 1 ? `${tone} range` : tone}
      title={title}
      aria-label={title}
      aria-pressed={isChosen}
      onClick={choose}
    >
      {cell.count > 1 ? `${sign} ${cell.count}` : sign}
    </button>
  );
}

/** What became of the chosen one, and its job. */
export function Account({
  cell,
  zone,
}: {
  readonly cell: Occurrence | undefined;
  readonly zone: string;
}): VNode | null {
  if (cell === undefined) return null;
  return (
    <p class="small account" role="status">
      {accountOf(cell, zone)}. {cell.jobId !== null && <a href={jobPath(cell.jobId)}>Its job</a>}
    </p>
  );
}
