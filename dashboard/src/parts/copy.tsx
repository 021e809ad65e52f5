import type { VNode } from "preact";
import { tell } from "./toasts.tsx";

/** Copies a text. Browsers let only pages from a safe address do it; elsewhere there is no button. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }): VNode | null {
  if (!isSecureContext) return null;
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(
      () => tell(`Copied ${what}.`),
      () => tell(`The browser did not let ${what} be copied.`, "bad"),
    );
  return (
    <button
      type="button"
      class="plain copy"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={copy}
    >
      <svg viewBox="0 0 16 16" width="14" height="14" fill="none" stroke="currentColor" aria-hidden="true">
        <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
        <path d="M10.5 3.5v-1h-8v8h1" stroke-linejoin="round" />
      </svg>
    </button>
  );
}
