import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { KindName } from "./servers/index.ts";

/** The environment variable that names the socket of the holder that this run shares. */
export const holderVariable = "ESCAPEMENT_TESTBED";

export type Action = "restart" | "kill" | "pause" | "resume" | "stop";

export type Request =
  | { readonly verb: "open"; readonly kind: KindName; readonly isPrivate: boolean }
  | { readonly verb: Action; readonly key: number; readonly part: string | undefined };

/** What a test is told about its server. */
export interface Description {
  readonly key: number;
  readonly name: string;
  readonly url: string;
  readonly version: string;
  readonly source: "environment" | "binary" | "apt" | "docker" | "edition";
  readonly parts: readonly string[];
}

export type Answer =
  | { readonly server: Description }
  | { readonly missing: string; readonly isOptional: boolean }
  | { readonly done: true }
  | { readonly error: string };

/** One JSON value on each line, with a number that ties an answer to its request. */
export interface Envelope<Body> {
  readonly id: number;
  readonly body: Body;
}

export function send(socket: Socket, envelope: Envelope<Request | Answer>): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(envelope)}\n`);
}

export function receive<Body>(socket: Socket, handle: (envelope: Envelope<Body>) => void): void {
  createInterface({ input: socket }).on("line", (line) => handle(JSON.parse(line) as Envelope<Body>));
}
