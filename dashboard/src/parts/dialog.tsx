import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Problem } from "./problem.tsx";
import { visible } from "./visible.ts";

interface DialogProps {
  readonly title: string;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
  close(): void;
}

/** A modal: focus stays inside, and goes back to where it came from. */
export function Dialog({ title, isWide = false, children, close }: DialogProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} class={isWide ? "wide fade" : "fade"} onClose={close} aria-labelledby={id}>
      <h2 id={id}>{visible(title)}</h2>
      {children}
    </dialog>
  );
}

interface Props {
  readonly title: string;
  /** What the button says: the action, not "OK". */
  readonly action: string;
  readonly isDanger?: boolean;
  readonly isReady?: boolean;
  readonly isWide?: boolean;
  readonly children?: ComponentChildren;
  /** Resolves when it is done; what it rejects with is shown, and the dialog stays. */
  run(reason: string): Promise<void>;
  /** Stops it while it runs; what is done stays done. */
  stop?(): void;
  close(): void;
}

/** Asks before something is changed: says what and how many, and takes the reason for the audit log. */
export function Confirm(props: Props): VNode {
  const {
    title,
    action,
    isDanger = false,
    isReady = true,
    isWide = false,
    children,
    run,
    stop,
    close,
  } = props;
  const [reason, setReason] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [isRunning, setRunning] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!isReady || isRunning) return;
    setRunning(true);
    setError(null);
    run(reason.trim()).then(close, (failure: Error) => {
      setError(failure);
      setRunning(false);
    });
  };
  return (
    <Dialog title={title} isWide={isWide} close={close}>
      <form onSubmit={submit}>
        {children}
        <label class="field">
          Reason, for the audit log (optional)
          <input
            value={reason}
            maxLength={1000}
            disabled={isRunning}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        {error !== null && <Problem error={error} what="Not done." />}
        <div class="dialog-foot">
          {isRunning && stop !== undefined ? (
            <button type="button" onClick={stop}>
              Stop
            </button>
          ) : (
            <button type="button" onClick={close}>
              {isRunning ? "Hide" : "Close"}
            </button>
          )}
          <button type="submit" class={isDanger ? "danger" : "primary"} disabled={!isReady || isRunning}>
            {isRunning ? "Working…" : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A reason as the API takes it: left out if none was given. */
export function because(reason: string): { readonly reason?: string } {
  return reason === "" ? {} : { reason };
}
