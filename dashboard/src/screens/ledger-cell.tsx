import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Occurrence } from "../api/answers.ts";
import { count, inZone } from "../format.ts";
import { jobPath } from "../router.ts";
import { accountOf, fateOf, tallyOf, tallyText } from "./fate.ts";
import type { Slot } from "./ledger-grid.ts";
import { LedgerLegend } from "./ledger-legend.tsx";

interface CellProps {
  readonly slot: Slot;
  /** The schedule's time zone. */
  readonly zone: string;
  readonly isChosen: boolean;
  /** Whether the tab key stops here; the arrow keys move on. */
  readonly isStop: boolean;
  choose(): void;
}

/** One place on the axis: the fate of the occurrence there, or the worst of several. */
export function Cell({ slot, zone, isChosen, isStop, choose }: CellProps): VNode {
  const [first] = slot.moments;
  if (first === undefined) return <span class="nothing" />;
  const tally = tallyOf(slot.moments);
  const { tone, sign } = fateOf(tally[0]?.[0] ?? "forgotten");
  const many = slot.moments.reduce((sum, one) => sum + one.many, 0);
  const title = isOne(slot)
    ? accountOf(first.of, zone)
    : `From ${inZone(first.of.fireAt, zone)}: ${tallyText(tally)}`;
  return (
    <button
      type="button"
      class={tone}
      title={title}
      aria-label={title}
      aria-expanded={isChosen}
      tabIndex={isStop ? 0 : -1}
      data-slot={slot.key}
      onClick={choose}
    >
      <span aria-hidden="true">{sign}</span>
      {many > 1 && !isOne(slot) && <span class="many">{count(many)}</span>}
    </button>
  );
}

/** The fate of the chosen one, and its job; of several, each. */
export function Account({ slot, zone }: { readonly slot: Slot; readonly zone: string }): VNode {
  const [chosen, setChosen] = useState<string | null>(null);
  const all = [...new Set(slot.moments.map(({ of }) => of))];
  const [first] = all;
  const tally = tallyOf(slot.moments);
  if (all.length === 1 && first !== undefined)
    return (
      <div class="account small" role="status">
        <Story cell={first} zone={zone} />
      </div>
    );
  const one = all.find(({ fireAt }) => fireAt === chosen);
  return (
    <div class="account small stack" role="status">
      <LedgerLegend tally={tally} />
      <div class="strip" role="group" aria-label="Each of them">
        {all.map((cell) => (
          <button
            key={cell.fireAt}
            type="button"
            class={fateOf(cell).tone}
            title={accountOf(cell, zone)}
            aria-label={accountOf(cell, zone)}
            aria-expanded={cell.fireAt === chosen}
            onClick={() => setChosen(cell.fireAt === chosen ? null : cell.fireAt)}
          >
            {fateOf(cell).sign}
          </button>
        ))}
      </div>
      {one === undefined ? (
        <p class="soft">Choose one to see its times and its job.</p>
      ) : (
        <Story cell={one} zone={zone} />
      )}
    </div>
  );
}

function Story({ cell, zone }: { readonly cell: Occurrence; readonly zone: string }): VNode {
  return (
    <p>
      {accountOf(cell, zone)}.{" "}
      {cell.jobId !== null && cell.fate !== "forgotten" && <a href={jobPath(cell.jobId)}>Its job</a>}
    </p>
  );
}

function isOne({ moments }: Slot): boolean {
  return new Set(moments.map(({ of }) => of)).size === 1;
}
