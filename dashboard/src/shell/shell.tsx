import type { ComponentChildren, VNode } from "preact";
import { useContext, useState } from "preact/hooks";
import { lastAnswerAt } from "../api/request.ts";
import { span } from "../format.ts";
import { Identity } from "../identity.ts";
import { Text } from "../parts/text.tsx";
import { useNow } from "../parts/time.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { usePlace } from "../router.ts";
import { Banner } from "./banner.tsx";
import { Keys, useKeys } from "./keys.tsx";
import { useMenuCounts } from "./menu-counts.ts";
import { screens } from "./screens.ts";
import { ThemeSwitch } from "./theme.tsx";

export function Shell({ children }: { readonly children: ComponentChildren }): VNode {
  const { path } = usePlace();
  const [isHelping, setHelping] = useState(false);
  useKeys(() => setHelping(true));
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Side path={path} showKeys={() => setHelping(true)} />
      <main class="main" id="content" tabIndex={-1}>
        <Banner />
        {children}
      </main>
      <Toasts />
      {isHelping && <Keys close={() => setHelping(false)} />}
    </div>
  );
}

function Side({ path, showKeys }: { readonly path: string; showKeys(): void }): VNode {
  const { actor, role, namespace, version } = useContext(Identity);
  const first = path.split("/")[0];
  const counts = useMenuCounts();
  return (
    <header class="side">
      <a class="brand" href="./">
        <Mark />
        Escapement
      </a>
      <nav aria-label="Screens">
        {screens.map((screen) => (
          <a
            key={screen.path}
            href={screen.path === "" ? "./" : screen.path}
            aria-current={first === screen.path ? "page" : undefined}
          >
            {screen.name}
            {counts[screen.path] && <span class="menu-count"> {counts[screen.path]}</span>}
          </a>
        ))}
      </nav>
      <div class="side-foot">
        <p class="who">
          Namespace <Text value={namespace} most={40} />
          <br />
          Signed in as <Text value={actor} most={40} />, role {role}
          <br />
          Version {version}
        </p>
        <Live />
        <div class="row">
          <ThemeSwitch />
          <button type="button" class="plain" onClick={showKeys} title="Keys">
            <kbd>?</kbd>
            <span class="hidden-label">Show all keys</span>
          </button>
        </div>
      </div>
    </header>
  );
}

const liveMs = 20_000;

/** Whether what is seen is of now. The menu asks every few seconds, whatever the screen does. */
function Live(): VNode {
  const agoMs = useNow() - lastAnswerAt();
  const isLive = agoMs < liveMs;
  return (
    <p class={isLive ? "live good" : "live warn"}>
      <span aria-hidden="true">{isLive ? "●" : "○"}</span> {isLive ? "live" : "not up to date"} ·{" "}
      {agoMs < 1_000 ? "now" : `${span(agoMs < 10_000 ? Math.floor(agoMs / 1_000) * 1_000 : agoMs)} ago`}
    </p>
  );
}

/** The escape wheel and its anchor. */
function Mark(): VNode {
  return (
    <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" aria-hidden="true">
      <circle cx="12" cy="14" r="6" stroke-dasharray="2.6 2.1" stroke-width="3" />
      <circle cx="12" cy="14" r="1.2" fill="currentColor" />
      <path d="M4 8 L12 3 L20 8" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
