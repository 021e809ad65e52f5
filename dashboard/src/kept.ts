/**
 * What a screen keeps for the next visit: by the entry of the browser's history, so that Back shows what was there, and a link to
 * the same screen starts fresh. It lasts as long as the page does.
 */
const entries = new Map<string, Map<string, unknown>>();
const mostEntries = 30;

let last = 0;
let entry = entryOf(history.state) ?? newEntry();
history.replaceState({ entry }, "");
// What one comes back to is drawn before it is scrolled; the browser would do it before.
history.scrollRestoration = "manual";

function entryOf(state: unknown): string | null {
  const kept = (state as { readonly entry?: unknown } | null)?.entry;
  return typeof kept === "string" ? kept : null;
}

/** No entry of a page that was there before a reload has the same. */
function newEntry(): string {
  last += 1;
  return `${performance.timeOrigin}-${last}`;
}

export function currentEntry(): string {
  return entry;
}

/** Makes an entry for a place that one goes to; what it returns is the state of the browser's entry. */
export function enter(): { readonly entry: string } {
  entry = newEntry();
  return { entry };
}

/** Comes to the entry of the browser's state, by its back or forward button. */
export function comeBack(state: unknown): void {
  entry = entryOf(state) ?? newEntry();
}

export function keep(name: string, value: unknown): void {
  const kept = entries.get(entry) ?? new Map<string, unknown>();
  kept.set(name, value);
  // The one that was used last is the last to be forgotten.
  entries.delete(entry);
  entries.set(entry, kept);
  const [oldest] = entries.keys();
  if (entries.size > mostEntries && oldest !== undefined) entries.delete(oldest);
}

/** What this entry keeps under a name. The name stands for the type. */
export function recall<T>(name: string): T | null {
  return (entries.get(entry)?.get(name) as T | undefined) ?? null;
}
