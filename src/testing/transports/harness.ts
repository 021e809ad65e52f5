import type { Route } from "../../message/transport.ts";

/** A message as somebody else than the transport finds it at its destination. */
export interface Arrived {
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A broker, as far as the suite needs one. What the author of a transport gives to it. */
export interface TransportPlace {
  /** A route to a new destination that holds nothing. */
  route(): Promise<Route>;
  /** What lies at a destination. Messages of one key stand in the order in which a consumer gets them. */
  arrived(destination: string): Promise<readonly Arrived[]>;
  /** A route to a destination that nobody has made; null if each destination exists. */
  missing(): Route | null;
  /** A body that is too large there. */
  readonly tooLarge: string;
  /** Whether a second message with the same dedupe id is dropped. */
  readonly dedupes: boolean;
  close(): Promise<void>;
}

/** A broker of one's own, with a way to it that can be harmed. */
export interface FragilePlace extends TransportPlace {
  /** The way: a `FaultProxy` fits. Null if nothing can stand in it. */
  readonly way: FragileWay | null;
  /** Ends the broker, as a crash would. */
  stop(): Promise<void>;
  /** Brings it back, with what it had kept. */
  start(): Promise<void>;
}

export interface FragileWay {
  delay(latencyMs: number): void;
  cut(forMs?: number): void;
  blackHole(forMs: number): void;
  dropReplies(forMs: number): void;
  pass(): void;
}

export interface TransportConformanceOptions {
  /** How the transport is called in the names of the tests. */
  readonly name: string;
  readonly open: () => Promise<TransportPlace>;
  readonly openFragile: () => Promise<FragilePlace>;
}
