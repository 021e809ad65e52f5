/** What this store needs from a client: an `ioredis` Redis or Cluster fits. */
export interface RedisClient {
  readonly status: string;
  readonly options: object;
  callBuffer(command: string, args: (string | Buffer | number)[]): Promise<unknown>;
  connect(): Promise<void>;
  disconnect(): void;
  duplicate(): RedisClient;
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...values: unknown[]) => void): unknown;
  off(event: string, listener: (...values: unknown[]) => void): unknown;
}

/** A server's address. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Where the servers are and how to log in. Structured-cloneable. */
export interface Connection {
  readonly mode: "single" | "sentinel" | "cluster";
  /** One server, the sentinels, or nodes of the cluster. */
  readonly nodes: readonly RedisNode[];
  /** What the sentinels call the primary. */
  readonly primary: string | null;
  readonly username: string | null;
  readonly password: string | null;
  readonly sentinelPassword: string | null;
  readonly db: number;
  readonly tls: boolean;
}
