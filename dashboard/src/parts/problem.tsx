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

interface NotFoundProps {
  readonly heading: string;
  readonly title: string;
  /** What was asked for. */
  readonly id: string;
  /** Why that may be, and where to go instead. */
  readonly children: ComponentChildren;
}

/** A screen for what an address names and is not there. */
export function NotFound({ heading, title, id, children }: NotFoundProps): VNode {
  return (
    <>
      <div class="page-head">
        <h1>{heading}</h1>
      </div>
      <Empty title={title}>
        <span class="mono">
          <Text value={id} most={200} />
        </span>
        {children}
      </Empty>
    </>
  );
}
