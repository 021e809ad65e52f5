import type { ComponentChildren, VNode } from "preact";
import { sentence } from "../format.ts";
import { Text } from "./text.tsx";

interface Props {
  readonly error: Error;
  /** What was not done because of it. */
  readonly what?: string;
  readonly retry?: () => void;
}

/** What failed, what was not done, and what can be done. */
export function Problem({ error, what, retry }: Props): VNode {
  return (
    <div class="notice bad" role="alert">
      <span>
        {what !== undefined && <strong>{what} </strong>}
        <Text value={sentence(error.message)} />
      </span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): VNode {
  return (
    <div class="panel empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
