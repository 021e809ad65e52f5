import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { JobSummary, JobsPage } from "../api/answers.ts";
import { isMistaken } from "../api/request.ts";
import { count, jobs as jobsText } from "../format.ts";
import { keep, recall } from "../kept.ts";
import { Answer } from "../parts/answer.tsx";
import { Empty } from "../parts/problem.tsx";
import { pathTo, usePlace } from "../router.ts";
import { isTyping } from "../shell/keys.tsx";
import { ActOnJobs } from "./act-on-jobs.tsx";
import { type Filter, readFilter } from "./filter.ts";
import type { JobAction } from "./job-actions.ts";
import { FilterBar, StateTabs } from "./jobs-filter.tsx";
import { JobTable } from "./jobs-table.tsx";
import { type LivePage, useLivePage } from "./live-page.ts";
import { Selection } from "./selection.tsx";

export function Jobs(): VNode {
  const { query, entry } = usePlace();
  const filter = readFilter(query);
  const cursor = query.get("cursor");
  const [isPaused, setPaused] = useState(false);
  const live = useLivePage(filter, cursor, isPaused);
  const [selected, setSelected] = useSelected(JSON.stringify(filter), entry);
  const [asked, setAsked] = useState<{ action: JobAction; isAll: boolean } | null>(null);
  usePauseKey(() => setPaused((value) => !value));
  return (
    <>
      <div class="page-head">
        <h1>Jobs</h1>
        <Fresh live={live} />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "▶ Resume updates" : "❚❚ Pause updates"}
        </button>
      </div>
      <StateTabs filter={filter} isPaused={isPaused} />
      <FilterBar filter={filter} />
      {isMistaken(live.page.error) && (
        <p class="small">
          <a href="jobs">Clear all filters</a>
        </p>
      )}
      <Answer of={live.page}>
        {(page) =>
          live.rows.length === 0 ? (
            <NoJobs filter={filter} page={page} />
          ) : (
            <>
              <JobTable rows={live.rows} selected={selected} select={setSelected} />
              <Pager page={page} filter={filter} isFirst={cursor === null} />
              <Selection
                filter={filter}
                selected={[...selected.values()]}
                clear={() => setSelected(new Map())}
                act={(action, isAll) => setAsked({ action, isAll })}
              />
            </>
          )
        }
      </Answer>
      {asked !== null && (
        <ActOnJobs
          action={asked.action}
          target={asked.isAll ? { filter } : { jobs: [...selected.values()] }}
          close={() => setAsked(null)}
          done={() => {
            setSelected(new Map());
            live.page.refresh();
          }}
        />
      )}
    </>
  );
}

type Selected = ReadonlyMap<string, JobSummary>;

/** It goes along from page to page, ends with another filter, and is there when one comes back. */
function useSelected(filterKey: string, entry: string): [Selected, (selected: Selected) => void] {
  const [selected, setSelected] = useState<Selected>(() => recall<Selected>("selected") ?? new Map());
  const before = useRef(filterKey);
  useEffect(() => {
    if (before.current === filterKey) return;
    before.current = filterKey;
    setSelected(recall<Selected>("selected") ?? new Map());
  }, [filterKey]);
  useEffect(() => keep("selected", selected), [selected, entry]);
  return [selected, setSelected];
}

function usePauseKey(toggle: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key === "p" && !isTyping(event.target) && !event.ctrlKey && !event.metaKey) toggle();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** What has come since is announced, and shown when asked for. */
function Fresh({ live: { fresh, hasMoreFresh, showFresh } }: { readonly live: LivePage }): VNode {
  return (
    <span role="status">
      {fresh > 0 && (
        <button type="button" class="primary" onClick={showFresh}>
          Show{" "}
          {hasMoreFresh
            ? `more than ${count(fresh)} new jobs`
            : `${count(fresh)} new ${fresh === 1 ? "job" : "jobs"}`}
        </button>
      )}
    </span>
  );
}

function NoJobs({ filter, page }: { readonly filter: Filter; readonly page: JobsPage }): VNode {
  if (page.cursor !== null)
    return (
      <Empty title={`None of the ${jobsText(page.looked)} looked at match`}>
        <a href={pathTo("jobs", { ...filter, cursor: page.cursor })}>Look further back</a>
      </Empty>
    );
  if (Object.keys(filter).length > 0)
    return (
      <Empty title="No job matches">
        <a href="jobs">Show all jobs</a>
      </Empty>
    );
  return (
    <Empty title="No jobs yet">
      <span>
        Enqueue one: <code>escapement enqueue NAME --input '{"{}"}'</code>
      </span>
    </Empty>
  );
}

interface PagerProps {
  readonly page: JobsPage;
  readonly filter: Filter;
  readonly isFirst: boolean;
}

function Pager({ page, filter, isFirst }: PagerProps): VNode {
  return (
    <nav class="row small" aria-label="Pages">
      {!isFirst && (
        <a class="button" href={pathTo("jobs", filter)}>
          Newest
        </a>
      )}
      {page.cursor !== null && (
        <a class="button" href={pathTo("jobs", { ...filter, cursor: page.cursor })}>
          Older
        </a>
      )}
      <span class="soft">
        {page.cursor === null ? "These are the last." : `${jobsText(page.looked)} looked at for this page.`}
      </span>
    </nav>
  );
}
