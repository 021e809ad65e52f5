import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { pathTo } from "../router.ts";
import { Account, Cell } from "./ledger-cell.tsx";
import type { Line } from "./ledger-grid.ts";
import { dayName } from "./ledger-time.ts";

interface Props {
  readonly lines: readonly Line[];
  readonly zone: string;
  /** The path of the schedule, to open a day; null if it is open already. */
  readonly dayPath: string | null;
}

const dayMarks = ["0:00", "6:00", "12:00", "18:00"];
const hourMarks = [":00", ":15", ":30", ":45"];

/** Days below each other, or the hours of one: what happened at the same time of day stands in one column. */
export function Lines({ lines, zone, dayPath }: Props): VNode {
  const [chosen, setChosen] = useState<string | null>(null);
  const [stop, setStop] = useState<string | null>(null);
  const slots = lines.flatMap(({ groups }) => groups.flat()).filter(({ moments }) => moments.length > 0);
  const stopKey = slots.some(({ key }) => key === stop) ? stop : (slots[0]?.key ?? null);
  const areHours = lines.some(({ hour }) => hour !== null);
  return (
    <div
      role="group"
      aria-label="Use the arrow keys to go from one to the next"
      class={areHours ? "lines hours" : "lines"}
      onKeyDown={move}
      onFocusIn={({ target }) => setStop(slotOf(target) ?? stop)}
    >
      <div class="line marks small soft" aria-hidden="true">
        <span />
        <div class="marks-row">
          {(areHours ? hourMarks : dayMarks).map((mark) => (
            <span key={mark} class="number">
              {mark}
            </span>
          ))}
        </div>
      </div>
      {lines.map((line) => {
        const open = line.groups.flat().find(({ key, moments }) => key === chosen && moments.length > 0);
        return (
          <div key={line.key} class="line">
            <LineName line={line} dayPath={dayPath} />
            <div class="axis" role="group" aria-label={`Occurrences of ${nameOf(line)}`}>
              {line.groups.map((group, place) => (
                <div key={place} class="part">
                  {group.map((slot) => (
                    <Cell
                      key={slot.key}
                      slot={slot}
                      zone={zone}
                      isChosen={slot.key === chosen}
                      isStop={slot.key === stopKey}
                      choose={() => setChosen(slot.key === chosen ? null : slot.key)}
                    />
                  ))}
                </div>
              ))}
            </div>
            {open !== undefined && <Account key={open.key} slot={open} zone={zone} />}
          </div>
        );
      })}
    </div>
  );
}

function LineName({ line, dayPath }: { readonly line: Line; readonly dayPath: string | null }): VNode {
  const name = nameOf(line);
  return (
    <span class="line-name small soft number">
      {dayPath === null ? name : <a href={pathTo(dayPath, { span: "day", day: line.day })}>{name}</a>}
    </span>
  );
}

function nameOf({ day, hour }: Line): string {
  return hour === null ? dayName(day) : `${hour}:00`;
}

function slotOf(target: EventTarget | null): string | null {
  return target instanceof HTMLElement ? (target.dataset["slot"] ?? null) : null;
}

/** The arrow keys go from one occurrence to the next; up and down go to the nearest of the next line. */
function move(event: KeyboardEvent): void {
  const from = event.target;
  if (!(event.currentTarget instanceof HTMLElement && from instanceof HTMLElement)) return;
  if (slotOf(from) === null) return;
  const cells = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-slot]")];
  const to = neighbour(cells, from, event.key);
  if (to === undefined) return;
  event.preventDefault();
  to.focus();
}

function neighbour(cells: readonly HTMLElement[], from: HTMLElement, key: string): HTMLElement | undefined {
  const place = cells.indexOf(from);
  if (key === "ArrowRight") return cells[place + 1];
  if (key === "ArrowLeft") return cells[place - 1];
  if (key === "Home") return cells[0];
  if (key === "End") return cells.at(-1);
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const { left, top } = from.getBoundingClientRect();
  const sign = key === "ArrowDown" ? 1 : -1;
  const distance = (cell: HTMLElement): number => {
    const box = cell.getBoundingClientRect();
    const down = (box.top - top) * sign;
    return down <= 1 ? Number.POSITIVE_INFINITY : down * 10_000 + Math.abs(box.left - left);
  };
  const nearest = cells.reduce<HTMLElement | undefined>(
    (best, cell) => (best === undefined || distance(cell) < distance(best) ? cell : best),
    undefined,
  );
  return nearest !== undefined && Number.isFinite(distance(nearest)) ? nearest : undefined;
}
