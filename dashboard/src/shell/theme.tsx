import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";

type Theme = "system" | "light" | "dark";

const kept = "escapement-theme";
const next: Readonly<Record<Theme, Theme>> = { system: "light", light: "dark", dark: "system" };
const signs: Readonly<Record<Theme, string>> = { system: "◐", light: "☀", dark: "☾" };

function readTheme(): Theme {
  const theme = localStorage.getItem(kept);
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** Goes from the system's choice to light to dark. */
export function ThemeSwitch(): VNode {
  const [theme, setTheme] = useState(readTheme());
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(kept, theme);
  }, [theme]);
  return (
    <button type="button" class="plain" onClick={() => setTheme(next[theme])}>
      <span aria-hidden="true">{signs[theme]}</span>
      <span>
        <span class="hidden-label">Theme: </span>
        {theme === "system" ? "system" : theme}
      </span>
    </button>
  );
}
