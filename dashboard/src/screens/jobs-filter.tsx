import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { JobState } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { compact, count } from "../format.ts";
import { Text } from "../parts/text.tsx";
import { visible } from "../parts/visible.ts";
import { go, pathTo, usePlace } from "../router.ts";
import { endedStates, type Filter, filterWords, isMoment, wordName, wordValue } from "./filter.ts";
import { fromField, ownZone, toField } from "./ledger-time.ts";

const tabs: readonly (JobState | "")[] = [
  "",
  "waiting",
  "active",
  "blocked",
  "dead",
  "lost",
  "succeeded",
  "cancelled",
];

interface Counts {
  readonly counts: readonly { readonly state?: JobState; readonly name?: string; readonly count: number }[];
}

export function StateTabs({
  filter,
  isPaused,
}: {
  readonly filter: Filter;
  readonly isPaused: boolean;
}): VNode {
  const { state: _, ...others } = filter;
  const { name, queue, tag, delivery, schedule } = filter;
  const counts = useQuery<Counts>(
    "counts",
    { by: "state", name, queue, tag, delivery, schedule },
    { everyMs: 5_000, isPaused },
  );
  // Counts know nothing of what only a scan can find.
  const isCounted =
    counts.data !== null && !["text", "error", "since", "until", "fingerprint"].some((word) => filter[word]);
  const of = (state: string): number => counts.data?.counts.find((row) => row.state === state)?.count ?? 0;
  return (
    <nav class="tabs" aria-label="States">
      {tabs.map((state) => (
        <a
          key={state}
          href={pathTo("jobs", { ...others, state })}
          aria-current={(filter["state"] ?? "") === state ? "true" : undefined}
        >
          {state === "" ? "all" : state}
          {state !== "" && isCounted && (
            <span class="count" title={count(of(state))}>
              {compact(of(state))}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}

const spans = [
  ["", "any time"],
  ["15m", "15 minutes"],
  ["1h", "an hour"],
  ["1d", "a day"],
  ["7d", "a week"],
  ["30d", "30 days"],
] as const;
const deliveries = ["", "at-most-once", "at-least-once", "effectively-once"] as const;

export function FilterBar({ filter }: { readonly filter: Filter }): VNode {
  const form = useRef<HTMLFormElement>(null);
  const { query } = usePlace();
  const isFocused = query.get("focus") === "search";
  useEffect(() => {
    if (isFocused) form.current?.querySelector<HTMLInputElement>("[type=search]")?.focus();
  }, [isFocused]);
  const apply = (event: Event): void => {
    event.preventDefault();
    if (form.current === null) return;
    const given = [...new FormData(form.current)].map(([key, value]) => [key, String(value).trim()]);
    const { within, from = "", to = "", ...words } = Object.fromEntries(given) as Filter;
    const { state, fingerprint } = filter;
    const since = fromField(from, ownZone) ?? within;
    go(pathTo("jobs", { state, fingerprint, ...words, since, until: fromField(to, ownZone) }));
  };
  const isOpen = ["name", "queue", "tag", "error", "schedule", "since", "until", "delivery"].some(
    (word) => filter[word],
  );
  return (
    <form ref={form} class="stack" onSubmit={apply} role="search" key={JSON.stringify(filter)}>
      <div class="row search">
        <input
          type="search"
          name="text"
          aria-label="Text in input, error or tags"
          placeholder="Search input, error and tags"
          defaultValue={filter["text"] ?? ""}
        />
        <button type="submit">Search</button>
      </div>
      <details open={isOpen}>
        <summary class="small">More filters</summary>
        <div class="fields">
          <Field word="name" label="Name" filter={filter} />
          <Field word="queue" label="Queue" filter={filter} />
          <Field word="tag" label="Tag" filter={filter} />
          <Field word="schedule" label="Schedule" filter={filter} />
          <Field word="error" label="Error contains" filter={filter} />
          <When filter={filter} />
          <label class="field">
            Delivery
            <select name="delivery" defaultValue={filter["delivery"] ?? ""}>
              {deliveries.map((one) => (
                <option key={one} value={one}>
                  {one === "" ? "any" : one}
                </option>
              ))}
            </select>
          </label>
        </div>
      </details>
      <Chips filter={filter} />
    </form>
  );
}

/** Within so long, or from one moment to another; one choice takes back the other. */
function When({ filter }: { readonly filter: Filter }): VNode {
  const within = useRef<HTMLSelectElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const { since = "", until } = filter;
  const verb = (endedStates as readonly string[]).includes(filter["state"] ?? "") ? "Ended" : "Enqueued";
  const ago = isMoment(since) ? "" : since;
  const clear = (): void => {
    if (within.current?.value === "") return;
    for (const field of place.current?.querySelectorAll("input") ?? []) field.value = "";
  };
  const moment = (name: "from" | "to", value: string | undefined): VNode => {
    const text = isMoment(value) ? toField(Date.parse(value), ownZone) : "";
    return (
      <label class="field">
        {name === "from" ? `${verb} from` : "To"}
        <input
          type="datetime-local"
          name={name}
          // By the minute, unless an address has seconds.
          step={text.length > "2026-11-15T03:00".length ? 1 : 60}
          defaultValue={text}
          onInput={() => {
            if (within.current !== null) within.current.value = "";
          }}
        />
      </label>
    );
  };
  return (
    <>
      <label class="field">
        {`${verb} within`}
        <select ref={within} name="within" defaultValue={ago} onChange={clear}>
          {spans.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
          {!spans.some(([value]) => value === ago) && <option value={ago}>{ago}</option>}
        </select>
      </label>
      <div ref={place} class="span-fields">
        {moment("from", since)}
        {moment("to", until)}
      </div>
    </>
  );
}

interface FieldProps {
  readonly word: string;
  readonly label: string;
  readonly filter: Filter;
}

function Field({ word, label, filter }: FieldProps): VNode {
  return (
    <label class="field">
      {label}
      <input name={word} defaultValue={filter[word] ?? ""} />
    </label>
  );
}

/** What is filtered by, each with the way to take it off. */
function Chips({ filter }: { readonly filter: Filter }): VNode | null {
  const given = filterWords.filter((word) => word !== "state" && filter[word] !== undefined);
  if (given.length === 0) return null;
  return (
    <div class="row small">
      {given.map((word) => {
        const value = filter[word] ?? "";
        const { [word]: _, ...others } = filter;
        return (
          <a
            key={word}
            class="chip"
            href={pathTo("jobs", others)}
            aria-label={`Remove ${word} ${visible(wordValue(value))}`}
          >
            {wordName(word)}: <Text value={wordValue(value)} most={40} /> ✕
          </a>
        );
      })}
      <a href={pathTo("jobs", { state: filter["state"] })}>Clear all</a>
    </div>
  );
}
