import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./visible.ts";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad";
  /** Takes back what was done. */
  readonly undo: (() => Promise<void>) | null;
}

const shownMs = 8_000;
let last = 0;
let show = (_: Toast): void => {};

/** Says what was done, or what failed and was not done. */
export function tell(text: string, tone: Toast["tone"] = "good", undo: Toast["undo"] = null): void {
  last += 1;
  show({ id: last, text: visible(text), tone, undo });
}

export function Toasts(): VNode {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const isRead = useRef(false);
  const remove = (id: number): void => setToasts((before) => before.filter((one) => one.id !== id));
  useEffect(() => {
    // While the pointer is on it or its button has the focus, it is being read.
    const later = (id: number): void =>
      void setTimeout(() => (isRead.current ? later(id) : remove(id)), shownMs);
    show = (toast) => {
      setToasts((before) => [...before.slice(-3), toast]);
      later(toast.id);
    };
  }, []);
  const reads = (value: boolean) => () => {
    isRead.current = value;
  };
  return (
    <div
      class="toasts"
      role="status"
      aria-live="polite"
      onMouseEnter={reads(true)}
      onMouseLeave={reads(false)}
      onFocusIn={reads(true)}
      onFocusOut={reads(false)}
    >
      {toasts.map((toast) => (
        <div key={toast.id} class={`notice fade ${toast.tone}`}>
          <span>{toast.text}</span>
          <span class="row">
            {toast.undo !== null && (
              <button
                type="button"
                onClick={() => {
                  remove(toast.id);
                  takeBack(toast);
                }}
              >
                Undo
              </button>
            )}
            <button type="button" class="plain" aria-label="Dismiss" onClick={() => remove(toast.id)}>
              ✕
            </button>
          </span>
        </div>
      ))}
    </div>
  );
}

function takeBack({ undo }: Toast): void {
  undo?.().then(
    () => tell("Undone."),
    (error: Error) => tell(`Not undone: ${error.message}`, "bad"),
  );
}
