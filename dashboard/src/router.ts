import { useSyncExternalStore } from "preact/compat";
import { comeBack, currentEntry, enter, keep, recall } from "./kept.ts";

/** Where the page is mounted, with a slash at its end. The server writes it into the page. */
const base = new URL(document.baseURI).pathname;

export interface Place {
  /** Below the mount, without a slash at the front: `jobs/42`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The entry of the browser's history: it tells a place from the same place visited later. */
  readonly entry: string;
}

let place = read();
const listeners = new Set<() => void>();

function read(): Place {
  const path = location.pathname.slice(base.length);
  return { path, query: new URLSearchParams(location.search), entry: currentEntry() };
}

function moved(): void {
  place = read();
  for (const listener of listeners) listener();
}

interface Sight {
  readonly scrollY: number;
  /** The address of the link that had the focus. */
  readonly link: string | null;
}

function leave(): void {
  const link = document.activeElement?.closest("main a")?.getAttribute("href") ?? null;
  keep("sight", { scrollY, link } satisfies Sight);
}

/** Restores a place as it was left; false on a first visit. */
export function showAsLeft(): boolean {
  const sight = recall<Sight>("sight");
  if (sight === null) return false;
  const links = sight.link === null ? [] : document.querySelectorAll<HTMLElement>("main a");
  [...links].find((link) => link.getAttribute("href") === sight.link)?.focus({ preventScroll: true });
  scrollTo(0, sight.scrollY);
  return true;
}

addEventListener("popstate", (event) => {
  leave();
  comeBack(event.state);
  moved();
});

// Links are plain ones, so that they can be opened in a new tab, copied and read out.
document.addEventListener("click", (event) => {
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!isPlain || event.defaultPrevented || link === null || link.target !== "" || link.download !== "")
    return;
  const fragment = link.getAttribute("href") ?? "";
  if (fragment.startsWith("#")) {
    // Such a link is relative to the mount, too, and would leave the screen.
    event.preventDefault();
    document.getElementById(fragment.slice(1))?.focus();
    return;
  }
  const url = new URL(link.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(base)) return;
  event.preventDefault();
  go(url.pathname.slice(base.length) + url.search);
});

/** Goes to a path below the mount. */
export function go(path: string, how: { readonly replace?: boolean } = {}): void {
  if (how.replace === true) history.replaceState(history.state, "", base + path);
  else {
    leave();
    history.pushState(enter(), "", base + path);
    scrollTo(0, 0);
  }
  moved();
}

export function usePlace(): Place {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => place,
  );
}

/** A path with what is given of a query; empty values are left out. */
export function pathTo(
  path: string,
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const given = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const text = new URLSearchParams(given as [string, string][]).toString();
  return text === "" ? path : `${path}?${text}`;
}

export function jobPath(id: string): string {
  return `jobs/${encodeURIComponent(id)}`;
}

/** A part of a path as it is meant; an address that was typed wrong names itself. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
