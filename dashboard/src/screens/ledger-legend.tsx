import type { VNode } from "preact";
import { count } from "../format.ts";
import { fateOf, type tallyOf } from "./fate.ts";

/** What the signs mean, and how many there are of each. */
export function LedgerLegend({ tally }: { readonly tally: ReturnType<typeof tallyOf> }): VNode {
  return (
    <ul class="legend small">
      {tally.map(([name, many]) => {
        const { tone, sign, word } = fateOf(name);
        return (
          <li key={name}>
            <span class={`swatch ${tone}`} aria-hidden="true">
              {sign}
            </span>
            {word} <span class="soft number">{count(many)}</span>
          </li>
        );
      })}
    </ul>
  );
}
