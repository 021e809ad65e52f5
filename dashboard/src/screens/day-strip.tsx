import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Occurrence } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { Account, Cell } from "./ledger-cell.tsx";

const limit = 48;

/** The latest occurrences of a day on one line. */
export function DayStrip({
  scheduleKey,
  zone,
}: {
  readonly scheduleKey: string;
  readonly zone: string;
}): VNode {
  const path = `schedules/${encodeURIComponent(scheduleKey)}/occurrences`;
  const answer = useQuery<{ occurrences: Occurrence[] }>(path, { from: "1d", limit }, { everyMs: 10_000 });
  const [chosen, setChosen] = useState<string | null>(null);
  const cells = answer.data?.occurrences ?? [];
  if (answer.data === null) return <span class="soft small">{answer.error?.message ?? "…"}</span>;
  if (cells.length === 0) return <span class="soft small">Nothing was due.</span>;
  return (
    <>
      <div class="strip" role="group" aria-label="Latest occurrences">
        {cells.map((cell) => (
          <Cell
            key={cell.fireAt}
            cell={cell}
            zone={zone}
            isChosen={cell.fireAt === chosen}
            choose={() => setChosen(cell.fireAt === chosen ? null : cell.fireAt)}
          />
        ))}
      </div>
      <Account zone={zone} cell={cells.find(({ fireAt }) => fireAt === chosen)} />
    </>
  );
}
