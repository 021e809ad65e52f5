import { request } from "./connection.ts";
import type { Action, Answer, Description } from "./protocol.ts";
import { type KindName, kinds } from "./servers/index.ts";

/** A real server for tests; or, when {@link skip} is a text, the reason why there is none. */
export interface Server {
  /** For the option `skip` of a test: false, or why the server cannot be had. The rest is there only when false. */
  readonly skip: false | string;
  /** Leads to a database that nobody else uses, on servers that have several. */
  readonly url: string;
  /** A name that nobody else uses, good for a schema, a database or a key prefix. */
  readonly name: string;
  readonly version: string;
  readonly source: Description["source"];
}

/** A server that was started for one test file alone: all of it, or one of its {@link parts}, can be made to fail. */
export class PrivateServer implements Server {
  readonly skip: false | string;
  readonly #description: Description | undefined;

  constructor(skip: false | string, description?: Description) {
    this.skip = skip;
    this.#description = description;
  }

  get url(): string {
    return this.#known.url;
  }

  get name(): string {
    return this.#known.name;
  }

  get version(): string {
    return this.#known.version;
  }

  get source(): Description["source"] {
    return this.#known.source;
  }

  /** The processes of the server, by name. */
  get parts(): readonly string[] {
    return this.#known.parts;
  }

  /** Stops it in good order if it runs, and starts it again on the same port with the same data. */
  async restart(part?: string): Promise<void> {
    await this.#act("restart", part);
  }

  /** Ends it as a crash would; `restart` brings it back. */
  async kill(part?: string): Promise<void> {
    await this.#act("kill", part);
  }

  /** Freezes it: connections stay open and nothing is answered. */
  async pause(part?: string): Promise<void> {
    await this.#act("pause", part);
  }

  async resume(part?: string): Promise<void> {
    await this.#act("resume", part);
  }

  /** Ends it for good and removes its data; a part can be brought back by `restart`. */
  async stop(part?: string): Promise<void> {
    await this.#act("stop", part);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  get #known(): Description {
    if (!this.#description) throw new Error(`there is no such server: ${this.skip}`);
    return this.#description;
  }

  async #act(verb: Action, part: string | undefined): Promise<void> {
    answered(await request({ verb, key: this.#known.key, part }));
  }
}

interface Open {
  /** A place on the server that all test files of the run share. */
  (): Promise<Server>;
  /** A server that others do not see, for tests that restart or kill it. It ends with the process at the latest. */
  (options: { readonly private: true }): Promise<PrivateServer>;
}

/**
 * Real servers, started when they are first asked for.
 *
 * @example
 * const server = await testbed.postgres();
 * describe("on Postgres", { skip: server.skip }, () => { … server.url … });
 */
export const testbed = Object.fromEntries(
  (Object.keys(kinds) as KindName[]).map((kind) => [kind, opener(kind)]),
) as unknown as Readonly<Record<KindName, Open>>;

function opener(kind: KindName): Open {
  async function open(options?: { readonly private: true }): Promise<PrivateServer> {
    const isPrivate = options?.private === true;
    const answer = answered(await request({ verb: "open", kind, isPrivate }));
    if ("server" in answer) return new PrivateServer(false, answer.server);
    if (!("missing" in answer)) throw new Error(`expected a server, got ${JSON.stringify(answer)}`);
    const reason = `${kind} cannot be had: ${answer.missing}`;
    if (process.env["CI"] === "true" && !answer.isOptional) throw new Error(`${reason} (and CI=true)`);
    return new PrivateServer(reason);
  }
  return open;
}

function answered(answer: Answer): Exclude<Answer, { error: string }> {
  if ("error" in answer) throw new Error(answer.error);
  return answer;
}
