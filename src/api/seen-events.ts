import type { Escapement } from "../app/escapement.ts";
import type { AppEventName, AppListener, DispatchPhase } from "../events.ts";

/** What this process has seen of the jobs of one name that a guarantee is about. */
export interface SeenOfName {
  readonly name: string;
  /** Enqueues of an id that was there already. */
  readonly existing: number;
  /** Enqueues absorbed by a unique key. */
  readonly absorbed: number;
  /** Writes that were refused because another claim had taken over. */
  readonly stale: number;
  /** Handlers stopped because their lease could not be kept. */
  readonly leasesLost: number;
}

type Figure = Exclude<keyof SeenOfName, "name">;

/** Names are counted one by one up to this many: whoever enqueues can make up as many as they like. */
const mostNames = 1_000;

/**
 * Counts duplicates that were prevented, and dispatches that were rolled back, in this process since it began to serve the API. The store keeps
 * no such figures: they would be writes about writes that changed nothing.
 */
export class SeenEvents {
  readonly since = new Date();
  readonly #app: Escapement;
  readonly #names = new Map<string, SeenOfName>();
  readonly #phases = { dispatched_write: 0, publish: 0, rollback_write: 0 };
  readonly #stops: (() => void)[] = [];

  constructor(app: Escapement) {
    this.#app = app;
    this.#listen("enqueued", ({ name, outcome }) => {
      if (outcome === "existing" || outcome === "absorbed") this.#count(name, outcome);
    });
    this.#listen("stale", ({ job }) => this.#count(job.name, "stale"));
    this.#listen("leaseLost", ({ job }) => this.#count(job.name, "leasesLost"));
    this.#listen("dispatchRetry", ({ phase }) => {
      this.#phases[phase] += 1;
    });
  }

  get names(): readonly SeenOfName[] {
    return [...this.#names.values()];
  }

  /** Dispatches to brokers that had to be tried again, by where they failed. */
  get phases(): Readonly<Record<DispatchPhase, number>> {
    return this.#phases;
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  #listen<E extends AppEventName>(event: E, listener: AppListener<E>): void {
    this.#app.on(event, listener);
    this.#stops.push(() => this.#app.off(event, listener));
  }

  #count(name: string, figure: Figure): void {
    const none = { name, existing: 0, absorbed: 0, stale: 0, leasesLost: 0 };
    const known = this.#names.get(name) ?? (this.#names.size < mostNames ? none : null);
    if (known !== null) this.#names.set(name, { ...known, [figure]: known[figure] + 1 });
  }
}
