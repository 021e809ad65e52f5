import { render, type VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Me } from "./api/answers.ts";
import { whenRefused } from "./api/request.ts";
import { useQuery } from "./api/use-query.ts";
import { Identity } from "./identity.ts";
import { NotFound, Problem } from "./parts/problem.tsx";
import { decoded, usePlace } from "./router.ts";
import { Audit } from "./screens/audit.tsx";
import { FailuresScreen } from "./screens/failures.tsx";
import { Guarantees } from "./screens/guarantees.tsx";
import { JobScreen } from "./screens/job.tsx";
import { Jobs } from "./screens/jobs.tsx";
import { Nodes } from "./screens/nodes.tsx";
import { Overview } from "./screens/overview.tsx";
import { Queues } from "./screens/queues.tsx";
import { ScheduleScreen } from "./screens/schedule.tsx";
import { Schedules } from "./screens/schedules.tsx";
import { SignIn } from "./screens/sign-in.tsx";
import { useArrival } from "./shell/arrival.ts";
import { Shell } from "./shell/shell.tsx";

function Screen(): VNode {
  const { path, entry } = usePlace();
  useArrival(path, entry);
  const [first = "", rest] = path.split("/");
  const id = rest === undefined || rest === "" ? null : decoded(rest);
  if (first === "") return <Overview />;
  if (first === "jobs") return id === null ? <Jobs /> : <JobScreen key={id} id={id} />;
  if (first === "failures") return <FailuresScreen />;
  if (first === "queues") return <Queues />;
  if (first === "schedules") return id === null ? <Schedules /> : <ScheduleScreen key={id} id={id} />;
  if (first === "guarantees") return <Guarantees />;
  if (first === "nodes") return <Nodes />;
  if (first === "audit") return <Audit />;
  return (
    <NotFound heading="No such page" title="There is no page at this address" id={path}>
      <a href="./">To the overview</a>
    </NotFound>
  );
}

function App(): VNode {
  const [refusals, setRefusals] = useState(0);
  const [isOut, setOut] = useState(false);
  useEffect(() => {
    whenRefused(() => {
      setRefusals((value) => value + 1);
      setOut(true);
    });
  }, []);
  const me = useQuery<Me>(isOut ? null : "me");
  if (isOut) return <SignIn wasRefused={refusals > 1} done={() => setOut(false)} />;
  if (me.data === null)
    return me.error === null ? (
      <p class="main soft">Loading…</p>
    ) : (
      <main class="main">
        <h1>Escapement</h1>
        <Problem error={me.error} retry={me.refresh} />
      </main>
    );
  return (
    <Identity.Provider value={me.data}>
      <Shell>
        <Screen />
      </Shell>
    </Identity.Provider>
  );
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
