import { slotCount } from "../../../store/partitions.ts";
import type { Link, Tuple } from "../connection/link.ts";
import { fixed, join, type Sql, sql } from "../connection/sql.ts";
import { numberOf, textOf } from "../rows.ts";

/** Lines of which a namespace has one each. */
const commonKinds = ["lane", "blocked", "succeeded", "dead", "lost", "cancelled", "alias"] as const;
type CommonKind = (typeof commonKinds)[number];

/**
 * Relayed jobs of this many slots share a line: reading a partition queries each of its lines, and each costs a good deal. If two
 * partitions share a line, both have to read through it.
 */
const slotsPerLine = 4;

function firstOfLine(slot: number): number {
  return slot - (slot % slotsPerLine);
}

/** The same in SQL. */
export const lineSlot = fixed(`slot div ${slotsPerLine} * ${slotsPerLine}`);

/** A line of waiting jobs that claims read. */
export interface WaitingLine {
  readonly line: number;
  readonly queue: string;
  readonly name: string;
}

interface Place {
  readonly kind: string;
  readonly queue: string;
  readonly name: string;
  /** The first of its slots. */
  readonly slot: number;
}

/** A line is unknown here: it was created after the lines were read, or another program wrote the queue or name of a job. */
export class UnknownLine extends Error {
  override readonly name = "UnknownLine";
  readonly place: Place;

  constructor(place: Place) {
    super(`the line ${JSON.stringify(place)} is not known here`);
    this.place = place;
  }
}

/** The numbers of the lines of a namespace. Lines are created once and never change, so each process caches them. */
export class Lines {
  readonly #ns: number;
  readonly #numbers = new Map<string, number>();
  readonly plain: WaitingLine[] = [];
  readonly fragile: WaitingLine[] = [];
  readonly #active: number[] = [];

  constructor(ns: number) {
    this.#ns = ns;
  }

  get size(): number {
    return this.#numbers.size;
  }

  get active(): readonly number[] {
    return this.#active;
  }

  common(kind: CommonKind): number {
    return this.#get({ kind, queue: "", name: "", slot: 0 });
  }

  waiting(kind: "plain" | "fragile", queue: string, name: string): number {
    return this.#get({ kind, queue, name, slot: 0 });
  }

  activeOf(queue: string): number {
    return this.#get({ kind: "active", queue, name: "", slot: 0 });
  }

  inSlot(kind: "relay" | "named", slot: number): number {
    return this.#get({ kind, queue: "", name: "", slot: firstOfLine(slot) });
  }

  /** The lines of these slots that ever held a relayed job; the first and the last may hold jobs of other slots too. */
  inSlots(kind: "relay" | "named", firstSlot = 0, endSlot = slotCount): number[] {
    const found: number[] = [];
    for (let slot = firstOfLine(firstSlot); slot < endSlot; slot += slotsPerLine) {
      const line = this.#numbers.get(keyOf({ kind, queue: "", name: "", slot }));
      if (line !== undefined) found.push(line);
    }
    return found;
  }

  /** Whether all lines that a job of this kind can ever be in are known. */
  knows(job: {
    readonly queue: string;
    readonly name: string;
    readonly slot: number;
    readonly relayed: boolean;
  }): boolean {
    return placesOf(job).every((place) => this.#numbers.has(keyOf(place)));
  }

  /** Creates the lines that jobs like these can ever be in. It must not be part of a transaction that may be rolled back. */
  async make(link: Link, jobs: readonly Parameters<Lines["knows"]>[0][]): Promise<void> {
    const missing = new Map<string, Place>();
    for (const job of jobs) {
      for (const place of placesOf(job))
        if (!this.#numbers.has(keyOf(place))) missing.set(keyOf(place), place);
    }
    await this.#insert(link, [...missing.values()]);
  }

  /** Finds a line that another process has created, or creates it: another program may have changed the queue or name of a job. */
  async find(link: Link, place: Place): Promise<void> {
    await this.refresh(link);
    if (!this.#numbers.has(keyOf(place))) await this.#insert(link, [place]);
  }

  /** Creates the lines that every namespace has. */
  makeCommon(link: Link): Promise<void> {
    return this.#insert(
      link,
      commonKinds.map((kind) => ({ kind, queue: "", name: "", slot: 0 })),
    );
  }

  /** Reads the lines again if there are more than are known. Comparing their number is enough, since none is ever deleted. */
  async refresh(link: Link): Promise<void> {
    const { rows } = await link.query(this.countThem());
    if (numberOf(rows[0]?.[0]) !== this.size) await this.#readAll(link);
  }

  countThem(): Sql {
    return sql`select count(*) from escapement_lines where ns = ${this.#ns}`;
  }

  async #readAll(link: Link): Promise<void> {
    const { rows } = await link.query(
      sql`select line, kind, queue, name, slot from escapement_lines where ns = ${this.#ns} order by line`,
    );
    for (const row of rows) this.#remember(row);
  }

  async #insert(link: Link, places: readonly Place[]): Promise<void> {
    if (places.length > 0) {
      const values = places.map(
        ({ kind, queue, name, slot }) => sql`(${this.#ns}, ${kind}, ${queue}, ${name}, ${slot})`,
      );
      link.write(
        sql`insert into escapement_lines (ns, kind, queue, name, slot) values ${join(values, ", ")} on duplicate key update slot = values(slot)`,
      );
    }
    await this.#readAll(link);
  }

  #remember(row: Tuple): void {
    const line = numberOf(row[0]);
    const [kind, queue, name] = [textOf(row[1]), textOf(row[2]), textOf(row[3])];
    const key = keyOf({ kind, queue, name, slot: numberOf(row[4]) });
    if (this.#numbers.has(key)) return;
    this.#numbers.set(key, line);
    if (kind === "plain" || kind === "fragile") this[kind].push({ line, queue, name });
    if (kind === "active") this.#active.push(line);
  }

  #get(place: Place): number {
    const line = this.#numbers.get(keyOf(place));
    if (line === undefined) throw new UnknownLine(place);
    return line;
  }
}

function keyOf({ kind, queue, name, slot }: Place): string {
  return `${kind}\n${slot}\n${queue}\n${name}`;
}

function placesOf(job: Parameters<Lines["knows"]>[0]): Place[] {
  const { queue, name, slot } = job;
  if (job.relayed)
    return ["relay", "named"].map((kind) => ({ kind, queue: "", name: "", slot: firstOfLine(slot) }));
  return [
    { kind: "plain", queue, name, slot: 0 },
    { kind: "fragile", queue, name, slot: 0 },
    { kind: "active", queue, name: "", slot: 0 },
  ];
}
