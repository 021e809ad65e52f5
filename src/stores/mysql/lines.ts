import { slotCount } from "../../store.ts";
import type { Link, Tuple } from "./link.ts";
import { numberOf, textOf } from "./rows.ts";
import { fixed, join, type Sql, sql } from "./sql.ts";

/** Lines that a namespace has once. */
const commonKinds = ["lane", "blocked", "succeeded", "dead", "lost", "cancelled", "alias"] as const;
type CommonKind = (typeof commonKinds)[number];

/**
 * Relayed jobs of so many slots stand in one line: a read of a partition asks for each of its lines, and each costs a good deal. A line that
 * two partitions share is one that both have to look through.
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

/** A line is not known here: it was made since the lines were read, or somebody else wrote the queue or name of a job. */
export class UnknownLine extends Error {
  override readonly name = "UnknownLine";
  readonly place: Place;

  constructor(place: Place) {
    super(`the line ${JSON.stringify(place)} is not known here`);
    this.place = place;
  }
}

/** The numbers of the lines of a namespace. They are made once and never change, so each process remembers them. */
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

  /** The lines of these slots that any relayed job was ever in; the first and the last may have others beside them. */
  inSlots(kind: "relay" | "named", firstSlot = 0, endSlot = slotCount): number[] {
    const found: number[] = [];
    for (let slot = firstOfLine(firstSlot); slot < endSlot; slot += slotsPerLine) {
      const line = this.#numbers.get(keyOf({ kind, queue: "", name: "", slot }));
      if (line !== undefined) found.push(line);
    }
    return found;
  }

  /** Whether every line that a job of this kind can ever stand in is known. */
  knows(job: {
    readonly queue: string;
    readonly name: string;
    readonly slot: number;
    readonly relayed: boolean;
  }): boolean {
    return placesOf(job).every((place) => this.#numbers.has(keyOf(place)));
  }

  /** Makes the lines that jobs like these can ever stand in. It must not be part of a transaction that may be rolled back. */
  async make(link: Link, jobs: readonly Parameters<Lines["knows"]>[0][]): Promise<void> {
    const missing = new Map<string, Place>();
    for (const job of jobs) {
      for (const place of placesOf(job))
        if (!this.#numbers.has(keyOf(place))) missing.set(keyOf(place), place);
    }
    await this.#insert(link, [...missing.values()]);
  }

  /** Finds a line that another process has made, or makes it: somebody else may have changed the queue or name of a job. */
  async find(link: Link, place: Place): Promise<void> {
    await this.refresh(link);
    if (!this.#numbers.has(keyOf(place))) await this.#insert(link, [place]);
  }

  /** Makes the lines that every namespace has. */
  makeCommon(link: Link): Promise<void> {
    return this.#insert(
      link,
      commonKinds.map((kind) => ({ kind, queue: "", name: "", slot: 0 })),
    );
  }

  /** Reads the lines again if there are more of them than are known. Their number tells, since none ever goes. */
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
