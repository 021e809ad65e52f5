/** Where a race is held: one server or file with one durability, fresh for each run. */
export interface Ground {
  readonly store: "sqlite" | "postgres" | "mysql" | "redis";
  /** Whether an acknowledged write survives a power failure; the same for every contestant. */
  readonly durability: "full" | "normal";
  /** A URL, or the path of a file that does not exist yet. */
  readonly address: string;
}

/** What a job carries: its number, and when it was sent (on the machine's monotonic clock, in milliseconds). */
export interface Load {
  readonly n: number;
  readonly sentAtMs: number;
}

export type Handler = (load: Load) => void;

/** A job system on one ground, ready to take jobs. */
export interface Session {
  /** Adds jobs by the call for many, where it has one. */
  addMany(loads: readonly Load[]): Promise<void>;
  /** Adds one job. */
  addOne(load: Load): Promise<void>;
  /** Starts a worker; resolves when its own start call does. */
  work(concurrency: number, handler: Handler): Promise<void>;
  /** Jobs whose completion is not durable yet, asked of the store. */
  left(): Promise<number>;
  /** Completed jobs that are kept, asked of the store; null where the system deletes them. */
  kept(): Promise<number | null>;
  close(): Promise<void>;
}

export interface Contestant {
  readonly name: string;
  readonly store: Ground["store"];
  /** What it takes part in; everything unless it says so. */
  readonly disciplines?: readonly ("drain" | "bulk" | "singles" | "pickup")[];
  /** Printed with every result, so its maintainers can check them. */
  settings(concurrency: number): Readonly<Record<string, string | number | boolean>>;
  /**
   * How many jobs it may hold beyond those that run. A drain's clock starts in the middle of a full queue; what may have been fetched by
   * then is not counted.
   */
  prefetch(concurrency: number): number;
  /** Makes its schema, if it has one, and connects. `clean` is false for a second process on the same ground. */
  open(ground: Ground, clean: boolean): Promise<Session>;
}
