import type { ComponentChildren, VNode } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { Identity } from "../identity.ts";
import { Text } from "../parts/text.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { usePlace } from "../router.ts";
import { Keys, useKeys } from "./keys.tsx";
import { screens } from "./screens.ts";
import { ThemeSwitch } from "./theme.tsx";

export function Shell({ children }: { readonly children: ComponentChildren }): VNode {
  const { path } = usePlace();
  const [isHelping, setHelping] = useState(false);
  useKeys(() => setHelping(true));
  useArrival(path);
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Side path={path} showKeys={() => setHelping(true)} />
      <main class="main" id="content" tabIndex={-1}>
        {children}
      </main>
      <Toasts />
      {isHelping && <Keys close={() => setHelping(false)} />}
    </div>
  );
}

/** Whoever hears the page instead of seeing it is taken along to the new screen. */
function useArrival(path: string): void {
  const first = path.split("/")[0];
  const isFirst = useRef(true);
  useEffect(() => {
    const name = screens.find((screen) => screen.path === first)?.name ?? "Not found";
    document.title = `${name} · Escapement`;
    document
      .querySelector('nav [aria-current="page"]')
      ?.scrollIntoView({ block: "nearest", inline: "center" });
    const content = document.getElementById("content");
    // A screen that was asked for its search has the focus in it already.
    const hasFocus = content?.contains(document.activeElement) === true;
    if (!isFirst.current && !hasFocus) content?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [path]);
}

function Side({ path, showKeys }: { readonly path: string; showKeys(): void }): VNode {
  const { actor, role, namespace, version } = useContext(Identity);
  const first = path.split("/")[0];
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
          </a>
        ))}
      </nav>
      <div class="side-foot">
        <p class="who">
          <Text value={namespace} most={40} />
          <br />
          <Text value={actor} most={40} />, role {role}
          <br />
          Version {version}
        </p>
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
