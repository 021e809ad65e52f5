import type { Logger } from "../../log.ts";
import { answerOf, type Link } from "./link.ts";

/** So many claimed jobs leave a few hundred dead pages at the front of the index of turns. */
const everyJobs = 20_000;
/** A vacuum reads the whole index, so that it waits until this share of it is dead. */
const deadShare = 0.1;

/**
 * Vacuums the table of turns as jobs are claimed. Each claim looks at the front of its index, which is where the dead entries of all earlier ones
 * are: autovacuum comes by once a minute, and until then a busy worker would pass over a million of them with each claim. Active jobs leave as many
 * dead rows; with the turns they are vacuumed too, so their table stays as small as what is active.
 */
export class TurnsVacuum {
  readonly #link: Pick<Link, "borrow">;
  /** Quoted. */
  readonly #schema: string;
  readonly #log: Logger;
  #claimed = 0;
  #next = everyJobs;
  #busy = false;

  constructor(link: Pick<Link, "borrow">, schema: string, log: Logger) {
    this.#link = link;
    this.#schema = schema;
    this.#log = log;
  }

  claimed(jobs: number): void {
    this.#claimed += jobs;
    if (this.#claimed >= this.#next && !this.#busy) void this.#run();
  }

  /** Failing is no harm: autovacuum does the same later. */
  async #run(): Promise<void> {
    this.#busy = true;
    try {
      await this.#link.borrow(async (client) => {
        const size = `select reltuples::text as answer from pg_class where oid = '${this.#schema}.turns'::regclass`;
        const dead = Number(answerOf(await client.query(size))) * deadShare;
        this.#next = Math.max(everyJobs, dead);
        if (this.#claimed < dead) return;
        this.#claimed = 0;
        // Waits for nobody and lets nobody wait: giving pages at the end back to the system would take a lock that stops claims.
        await client.query(
          `vacuum (skip_locked, truncate false) ${this.#schema}.turns, ${this.#schema}.active`,
        );
      });
    } catch (error) {
      this.#claimed = 0;
      this.#log.debug({ error }, "the table of turns was not vacuumed; autovacuum will");
    } finally {
      this.#busy = false;
    }
  }
}
