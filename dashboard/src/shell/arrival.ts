import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { visible } from "../parts/visible.ts";
import { decoded, showAsLeft } from "../router.ts";
import { screens } from "./screens.ts";

/**
 * Screen readers follow to the new screen, and a person who comes back finds it as it was. It belongs in the
 * component that draws the screens: only then are they drawn when it looks.
 */
export function useArrival(path: string, entry: string): void {
  useEffect(() => {
    document.title = titleOf(path);
  }, [path]);
  const before = useRef(path);
  useLayoutEffect(() => {
    const isElsewhere = before.current !== path;
    before.current = path;
    if (showAsLeft()) return;
    const content = document.getElementById("content");
    // A screen that was asked for its search has the focus in it already.
    const hasFocus = content?.contains(document.activeElement) === true;
    if (isElsewhere && !hasFocus) content?.focus({ preventScroll: true });
  }, [entry]);
}

/** It tells tabs and entries of the back button apart. */
function titleOf(path: string): string {
  const [first, ...rest] = path.split("/");
  const name = screens.find((screen) => screen.path === first)?.name ?? "Not found";
  const one = visible(decoded(rest.join("/")));
  return `${one === "" ? "" : `${one} · `}${name} · Escapement`;
}
