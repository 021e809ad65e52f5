import type { Link } from "../connection/link.ts";
import { sql } from "../connection/sql.ts";
import { numberOf } from "../rows.ts";

/** A new claimer's sequence, lower than any other. */
const noSequence = -Number.MAX_SAFE_INTEGER;
const maxRemembered = 10_000;

/** The numbers of claimers in the rows of jobs. They never change, so each process caches them. */
export class Claimers {
  readonly #ns: number;
  readonly #numbers = new Map<string, number>();

  constructor(ns: number) {
    this.#ns = ns;
  }

  /** The number of a claimer that is already known. */
  of(name: string): number {
    const number = this.#numbers.get(name);
    if (number === undefined) throw new Error(`the claimer ${name} is not known`);
    return number;
  }

  knows(name: string): boolean {
    return this.#numbers.has(name);
  }

  /** Finds or creates the number of a claimer. It must not be part of a transaction that may be rolled back. */
  async make(link: Link, name: string): Promise<void> {
    const find = sql`select claimer from escapement_claimers where ns = ${this.#ns} and name = ${name}`;
    let { rows } = await link.query(find);
    if (rows.length === 0) {
      link.write(
        sql`insert into escapement_claimers (ns, name, sequence, seen_at) values (${this.#ns}, ${name}, ${noSequence}, 0)
          on duplicate key update name = values(name)`,
      );
      ({ rows } = await link.query(find));
    }
    if (this.#numbers.size >= maxRemembered) this.#numbers.clear();
    this.#numbers.set(name, numberOf(rows[0]?.[0]));
  }
}
