import type { Daemon } from "./daemon.ts";
import type { Software, Toolbox } from "./software.ts";

/** A kind of server: one file in `servers/` and one line in `servers/index.ts`. */
export interface ServerKind {
  readonly name: string;
  /** The environment variable that gives a server by its URL. */
  readonly variable: string;
  /** What runs it: alternatives, the best first. */
  readonly software: readonly Software[];
  /** What asks a server that is given by URL, if a program is needed for that. */
  readonly client?: Software;
  /** The kind of server that this one stands in front of; it is started first. */
  readonly behind?: ServerKind;
  /** Few machines have it: nobody is blamed for its absence, even when `CI=true`. */
  readonly isOptional?: boolean;
  /** None of its processes is ready before the others run. @default each is started when those before it are ready */
  readonly startsTogether?: boolean;

  /** Starts a new server. */
  start(site: Site): Promise<Instance>;
  /** The version of a running server. */
  version(url: string, tools: Toolbox | undefined): Promise<string>;
  /** Makes a database for one user of a shared server and gives back its URL; absent where names are enough. */
  allot?(url: string, name: string, tools: Toolbox | undefined): Promise<string>;
  /** Removes what `allot` made, from a server that outlives us. */
  reclaim?(url: string, name: string, tools: Toolbox | undefined): Promise<void>;
}

/** Where and with what a server is started. */
export interface Site {
  readonly tools: Toolbox;
  /** On disk, and owned by the user that the server runs as. */
  readonly folder: string;
  /** Makes a folder inside, for the same user. */
  makeFolder(name: string): string;
  /** Writes a file inside, for the same user, and gives back its path. */
  writeFile(name: string, text: string): string;
  /** Loopback is open to every user of the machine, so each server asks for this. */
  readonly password: string;
  /** The server that this one stands in front of. */
  readonly upstreamUrl: string | undefined;
  /** Registered before they start, so that nothing of a failed start stays behind. */
  readonly daemons: Daemon[];
}

export interface Instance {
  readonly url: string;
}
