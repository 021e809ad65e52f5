import type { VNode } from "preact";
import { Text } from "./text.tsx";

const openDepth = 2;
const mostShown = 200;

/** JSON as a tree. Everything in it is text: nothing of it is ever markup. */
export function Tree({
  value,
  name,
  depth = 0,
}: {
  readonly value: unknown;
  readonly name?: string;
  readonly depth?: number;
}): VNode {
  const label =
    name === undefined ? null : (
      <span class="key">
        <Text value={name} most={200} />:{" "}
      </span>
    );
  if (typeof value !== "object" || value === null) {
    return (
      <div class={depth === 0 ? "tree" : ""}>
        {label}
        <span class={typeof value === "string" ? "string" : "literal"}>
          <Text value={JSON.stringify(value) ?? "undefined"} />
        </span>
      </div>
    );
  }
  const entries = Object.entries(value);
  const brackets = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0)
    return (
      <div class={depth === 0 ? "tree" : ""}>
        {label}
        {brackets.join("")}
      </div>
    );
  return (
    <details class={depth === 0 ? "tree" : ""} open={depth < openDepth}>
      <summary>
        {label}
        <span class="soft">
          {brackets[0]} {entries.length} {brackets[1]}
        </span>
      </summary>
      <ul>
        {entries.slice(0, mostShown).map(([key, one]) => (
          <li key={key}>
            <Tree value={one} name={key} depth={depth + 1} />
          </li>
        ))}
        {entries.length > mostShown && <li class="soft">{entries.length - mostShown} more</li>}
      </ul>
    </details>
  );
}
