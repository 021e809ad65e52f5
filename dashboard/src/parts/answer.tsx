import type { ComponentChildren, VNode } from "preact";
import type { Asking } from "../api/use-query.ts";
import { sentence, span } from "../format.ts";
import { Problem } from "./problem.tsx";
import { useNow } from "./time.tsx";

interface Props<T> {
  readonly of: Asking<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** What an answer shows: nothing yet, why there is none, or the answer, marked when it is no longer fresh. */
export function Answer<T>({ of, children }: Props<T>): VNode {
  const { data, error, isSlow, refresh } = of;
  if (data === null)
    return error === null ? (
      <p class="soft" aria-busy="true">
        {isSlow ? "The server is slow. Still waiting…" : "Loading…"}
      </p>
    ) : (
      <Problem error={error} retry={refresh} />
    );
  return (
    <>
      {children(data)}
      {(error !== null || isSlow) && <Stale of={of} />}
    </>
  );
}

/** At the end of the page and always in sight: it moves nothing of what one reads. */
function Stale<T>({ of: { error, answeredAt, refresh } }: { readonly of: Asking<T> }): VNode {
  const now = useNow();
  return (
    <div class="notice warn stale" role="status">
      <span>
        <strong>Not up to date.</strong>{" "}
        {error === null ? "The server is slow to answer." : sentence(error.message)} What is shown was true{" "}
        {span(Math.max(1_000, now - answeredAt))} ago.
      </span>
      <button type="button" onClick={refresh}>
        Try again
      </button>
    </div>
  );
}
