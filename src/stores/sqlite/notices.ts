import { existsSync, realpathSync } from "node:fs";
import type { Notice } from "../../store/notices.ts";
import type { StoreContext } from "../../store/opening.ts";
import { Listeners } from "../listeners.ts";
import { Sidecar } from "./connection/sidecar.ts";

/** How a namespace learns what has changed. */
export interface Channel {
  publish(notices: readonly Notice[]): void;
  subscribe(listener: (notice: Notice) => void): () => void;
  close(): void;
}

/** Between the processes on one file. */
export function fileChannel(file: string, { namespace, clock, log }: StoreContext): Channel {
  const listeners = new Listeners(log);
  // SQLite also puts its own files next to the real one, so processes that come through a link meet there.
  const database = existsSync(file) ? realpathSync(file) : file;
  const sidecar = new Sidecar({
    database,
    namespace,
    sender: crypto.randomUUID(),
    hear: (notices) => listeners.notify(notices),
    failed: (error) =>
      log.warn(
        { error, file },
        "this process and others on its SQLite file cannot wake each other; they poll",
      ),
  });
  return {
    publish(notices) {
      if (notices.length === 0) return;
      if (listeners.size > 0) clock.defer(() => listeners.notify(notices));
      sidecar.tell(notices);
    },
    subscribe(listener) {
      const remove = listeners.add(listener);
      sidecar.listen();
      return () => {
        remove();
        if (listeners.size === 0) sidecar.deafen();
      };
    },
    close: () => sidecar.close(),
  };
}

/** Within this process alone. */
export function processChannel(listeners: Listeners, { clock }: StoreContext): Channel {
  return {
    publish(notices) {
      if (notices.length > 0 && listeners.size > 0) clock.defer(() => listeners.notify(notices));
    },
    subscribe: (listener) => listeners.add(listener),
    close() {},
  };
}
