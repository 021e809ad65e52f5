import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { JobSummary, JobsPage } from "../api/answers.ts";
import { count, jobs as jobsText } from "../format.ts";
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
  const { query } = usePlace();
  const filter = readFilter(query);
  const cursor = query.get("cursor");
  const [isPaused, setPaused] = useState(false);
  const live = useLivePage(filter, cursor, isPaused);
  const [selected, setSelected] = useState<ReadonlyMap<string, JobSummary>>(new Map());
  const [asked, setAsked] = useState<{ action: JobAction; isAll: boolean } | null>(null);
  const filterKey = JSON.stringify(filter);
  useEffect(() => setSelected(new Map()), [filterKey]);
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
      <Answer of={live.page}>
        {(page) =>
          live.rows.length === 0 ? (
            <NoJobs filter={filter} page={page} />
          ) : (
            <>
              <Selection
                filter={filter}
                selected={[...selected.values()]}
                clear={() => setSelected(new Map())}
                act={(action, isAll) => setAsked({ action, isAll })}
              />
              <JobTable rows={live.rows} selected={selected} select={setSelected} />
              <Pager page={page} filter={filter} isFirst={cursor === null} />
            </>
          )
        }
      </Answer>
      {asked !== null && (
        <ActOnJobs
          action={asked.action}
          target={asked.isAll ? { filter } : { ids: [...selected.keys()] }}
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
