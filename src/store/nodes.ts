/** Which processes serve the namespace. */
export interface NodeVerbs {
  /** Writes a node's record, new or again; it is alive for `ttlMs` from now. */
  putNode(params: NodeRecord): Promise<void>;

  /** Removes the record of a node that has stopped. */
  removeNode(params: { readonly id: string }): Promise<void>;

  /** Every node with a record, silent ones included. */
  nodes(): Promise<SeenNode[]>;
}

/** What a node reports about itself. */
export interface NodeRecord {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly roles: readonly string[];
  /** Null means all. */
  readonly queues: readonly string[] | null;
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly active: number;
  /** How long it may be silent and still count as alive. */
  readonly ttlMs: number;
  /** What it has been running for a while, the longest first, and not all of it if there is a lot. Spans are as of this report. */
  readonly running?: readonly RunningJob[];
  /** Where its relay publishes. */
  readonly destinations?: readonly DestinationState[];
  /** Partitions of its relay on which a job has been due for a while and is not published yet. */
  readonly lags?: readonly PartitionLag[];
}

export interface PartitionLag {
  readonly partition: number;
  /** How long the oldest of them had been due. */
  readonly lagMs: number;
}

export interface RunningJob {
  readonly id: string;
  readonly name: string;
  /** How long its handler had run. */
  readonly forMs: number;
  /** How much was left of its lease, by the holder's cautious estimate; later renewals are not in it. */
  readonly leaseMs: number;
}

export interface DestinationState {
  readonly transport: string;
  /** Without a login or a query. */
  readonly destination: string;
  /** How many batches in a row did not get through at all; 0 when all is well. */
  readonly failures: number;
  /** Why the last of them did not; null when all is well. */
  readonly error: string | null;
}

export interface SeenNode extends NodeRecord {
  readonly startedAt: Date;
  readonly seenAt: Date;
  readonly alive: boolean;
}
