import type { Clock } from "../../clock.ts";
import type { Notice } from "../../store/notices.ts";
import { NoticeDraft } from "../notice-draft.ts";

interface Subscriber {
  readonly clock: Clock;
  readonly listener: (notice: Notice) => void;
}

/** Collects what a verb changed and publishes it once the verb is done, at the end of the turn. */
export class Notices {
  readonly subscribers = new Set<Subscriber>();
  draft = new NoticeDraft();

  /** Passes everything collected to the subscribers, each on its own clock's next turn. */
  flush(): void {
    const notices = this.draft.toNotices();
    if (notices.length === 0) return;
    this.draft = new NoticeDraft();
    for (const subscriber of this.subscribers) {
      subscriber.clock.defer(() => {
        if (!this.subscribers.has(subscriber)) return;
        for (const notice of notices) subscriber.listener(notice);
      });
    }
  }
}
