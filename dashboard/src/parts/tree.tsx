import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { rawNumber } from "../../../src/exact-json.ts";
import { count } from "../format.ts";
import { Text } from "./text.tsx";

const openDepth = 2;
/** How many entries of a list, or fields of an object, are shown at once. */
const pageSize = 100;
/** How much of a long string is shown before one asks for all of it. */
const shortString = 500;
/** Branches with more below them begin folded. */
const mostOpen = 50;

interface Props {
  readonly value: unknown;
  readonly name?: string;
  readonly depth?: number;
}

/** JSON as a tree. Everything in it is text: nothing of it is ever markup. What is large begins folded. */
export function Tree({ value, name, depth = 0 }: Props): VNode {
  const outer = depth === 0 ? "tree" : "";
  const label =
    name === undefined ? null : (
      <span class="key">
        <Text value={name} most={200} />:{" "}
      </span>
    );
  const digits = rawNumber(value);
  if (typeof value !== "object" || value === null || digits !== null) {
    return (
      <div class={outer}>
        {label}
        {typeof value === "string" ? (
          <LongString value={value} />
        ) : (
          <span class="literal">
            <Text value={digits ?? JSON.stringify(value) ?? "undefined"} />
          </span>
        )}
      </div>
    );
  }
  const entries = Object.entries(value);
  const [open, shut] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0)
    return (
      <div class={outer}>
        {label}
        {open}
        {shut}
      </div>
    );
  return (
    <details class={outer} open={depth < openDepth && (depth === 0 || entries.length <= mostOpen)}>
      <summary>
        {label}
        <span class="soft">
          {open} {count(entries.length)} {shut}
        </span>
      </summary>
      <Entries entries={entries} depth={depth + 1} />
    </details>
  );
}

function Entries({
  entries,
  depth,
}: {
  readonly entries: readonly (readonly [string, unknown])[];
  readonly depth: number;
}): VNode {
  const [many, setMany] = useState(pageSize);
  const left = entries.length - many;
  return (
    <ul>
      {entries.slice(0, many).map(([key, one]) => (
        <li key={key}>
          <Tree value={one} name={key} depth={depth} />
        </li>
      ))}
      {left > 0 && (
        <li>
          <button type="button" class="plain small" onClick={() => setMany(many + pageSize)}>
            Show {count(Math.min(left, pageSize))} more of {count(left)}
          </button>
        </li>
      )}
    </ul>
  );
}

/** A string in quotation marks; of a long one its beginning, until one asks for the rest. */
function LongString({ value }: { readonly value: string }): VNode {
  const [isWhole, setWhole] = useState(false);
  const isLong = value.length > shortString;
  const shown = isLong && !isWhole ? value.slice(0, shortString) : value;
  return (
    <>
      <span class="string">
        <Text value={JSON.stringify(shown)} most={Number.POSITIVE_INFINITY} />
      </span>
      {isLong && (
        <>
          {" "}
          <button type="button" class="plain small" onClick={() => setWhole(!isWhole)}>
            {isWhole ? "Fold" : `Show all ${count(value.length)} characters`}
          </button>
        </>
      )}
    </>
  );
}
