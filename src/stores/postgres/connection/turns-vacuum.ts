import type { Logger } from "../../../log.ts";
import { answerOf, type Link } from "./link.ts";

/** This many claimed jobs leave a few hundred dead pages at the front of the index of turns. */
const everyJobs = 20_000;
/** A vacuum reads the whole index, so it waits until this share of it is dead. */
const deadShare = 0.1;

/**
 * Vacuums the table of turns as jobs are claimed. Each claim reads the front of its index, where the dead entries of all earlier claims
 * are: autovacuum runs once a minute, and until then each claim of a busy worker would skip up to a million of them. Active jobs leave as many
 * dead rows; their table is vacuumed along with the turns, so it stays as small as what is active.
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

  /** A failure is harmless: autovacuum does the same later. */
  async #run(): Promise<void> {
    this.#busy = true;
    try {
      await this.#link.borrow(async (client) => {
        const size = `select reltuples::text as answer from pg_class where oid = '${this.#schema}.turns'::regclass`;
        const dead = Number(answerOf(await client.query(size))) * deadShare;
        this.#next = Math.max(everyJobs, dead);
        if (this.#claimed < dead) return;
        this.#claimed = 0;
        // Waits for no lock and blocks no other process: truncating the table would take a lock that stops claims.
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
