import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { go } from "../router.ts";
import { screens } from "./screens.ts";

/** Where letters are letters. */
export function isTyping(target: EventTarget | null): boolean {
  const places = "input:not([type=checkbox]), textarea, select, dialog";
  return target instanceof HTMLElement && target.closest(places) !== null;
}

/** Moves the focus to the first link of the next or the previous row: from there, Enter opens it. */
function moveBy(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const current = document.activeElement?.closest<HTMLElement>("[data-row]") ?? null;
  const from = current === null ? (step === 1 ? -1 : rows.length) : rows.indexOf(current);
  const row = rows[Math.max(0, Math.min(rows.length - 1, from + step))];
  const link = row?.querySelector<HTMLElement>("a, button");
  link?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function toggleRow(): void {
  const row = document.activeElement?.closest("[data-row]");
  row?.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
}

/** From any row to what can be done with those that are selected. */
function act(): void {
  document.querySelector<HTMLElement>('main .actions[role="group"] button')?.focus();
}

function search(): void {
  const field = document.querySelector<HTMLInputElement>("input[type=search]");
  if (field === null) go("jobs?focus=search");
  else field.focus();
}

/** `g` and a letter goes to a screen, `/` to the search, `j` and `k` along the rows, `?` shows all keys. */
export function useKeys(showHelp: () => void): void {
  useEffect(() => {
    let isGoing = false;
    const actions: Readonly<Record<string, () => void>> = {
      "?": showHelp,
      "/": search,
      j: () => moveBy(1),
      k: () => moveBy(-1),
      x: toggleRow,
      a: act,
    };
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      const screen = isGoing ? screens.find(({ key }) => key === event.key) : undefined;
      isGoing = !isGoing && event.key === "g";
      const action = screen === undefined ? actions[event.key] : () => go(screen.path);
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

const rows: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["/"], "search jobs"],
  [["j", "k"], "next and previous row"],
  [["Enter"], "open the row"],
  [["x"], "select the row"],
  [["a"], "go to the actions for what is selected"],
  [["p"], "pause or resume updates of jobs"],
  [["?"], "this list"],
  [["Esc"], "close a dialog"],
];

export function Keys({ close }: { close(): void }): VNode {
  const all = [...rows, ...screens.map(({ key, name }) => [["g", key], `go to ${name}`] as const)];
  return (
    <Dialog title="Keys" close={close}>
      <form method="dialog">
        <dl class="facts keys">
          {all.map(([keys, what]) => [
            <dt key={`${what} keys`}>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>,
            <dd key={what}>{what}</dd>,
          ])}
        </dl>
        <div class="dialog-foot">
          <button type="submit">Close</button>
        </div>
      </form>
    </Dialog>
  );
}
