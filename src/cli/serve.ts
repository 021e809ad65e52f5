import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Command } from "commander";
import type { Api, ApiOptions } from "../api/index.ts";
import type { Escapement } from "../app/escapement.ts";
import { EscapementError, recordError } from "../errors.ts";
import { type AppFlags, createApp, runningCommand } from "./app.ts";
import { several } from "./filter-flags.ts";
import { print } from "./output.ts";
import { portNumber } from "./port-number.ts";
import { stopOnSignal } from "./stop-on-signal.ts";

interface ServeFlags extends AppFlags {
  readonly port: number;
  readonly host: string;
  readonly tokensFile?: string;
  readonly basePath?: string;
  readonly redact?: readonly string[];
}

/** A command that serves. */
interface ServeCommand {
  readonly name: string;
  readonly about: string;
  readonly what: string;
  readonly port: number;
  create(app: Escapement, options: ApiOptions): Promise<Api>;
}

/** A command that serves requests about an app. */
export function serveCommand({ name, about, what, port, create }: ServeCommand): Command {
  return runningCommand(name, about)
    .option("--port <n>", "the port to listen on; 0 picks a free port", portNumber, port)
    .option("--host <address>", "the address to listen on; any other than loopback needs tokens", "127.0.0.1")
    .option(
      "--tokens-file <file>",
      "tokens, one per line: role:actor:token (also: ESCAPEMENT_API_TOKENS); the role is read, operate or admin",
    )
    .option("--base-path <path>", "a prefix of all routes, such as /escapement")
    .option("--redact <key>", "mask this key of inputs and results in responses; repeatable", several)
    .action(async (flags: ServeFlags) => {
      const { readTokens } = await import("../api/index.ts");
      const tokens = readTokens(process.env, flags.tokensFile ?? null);
      if (tokens.length === 0 && !isLoopback(flags.host)) throw openToAll(flags.host);
      await using app = await createApp(flags, "ask");
      const api = await create(app, {
        ...(tokens.length > 0 ? { tokens } : { insecure: true }),
        ...(flags.basePath === undefined ? {} : { basePath: flags.basePath }),
        redact: flags.redact ?? [],
      });
      // A store that is not there is an error now, and not at the first request.
      await app.health();
      const served = await serve(api, flags);
      const url = `${served.url}${flags.basePath ?? ""}`;
      const stopping = stopOnSignal();
      print(flags.json, { url, hasTokens: tokens.length > 0 }, () => [
        `${what} is at ${url}; stop it with Ctrl-C`,
        ...(tokens.length > 0 ? [] : ["it has no tokens, so it answers this machine only, as admin"]),
      ]);
      if (!stopping.aborted) await once(stopping, "abort");
      await served.close();
    });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function openToAll(host: string): EscapementError {
  return new EscapementError(
    "invalid-option",
    `expected tokens, since ${host} can be reached by others: set ESCAPEMENT_API_TOKENS or --tokens-file, or listen on 127.0.0.1`,
  );
}

/** What is served, and where. */
export interface Served {
  readonly url: string;
  /** Answers in progress may finish; streams are ended, and connections that only wait are closed. */
  close(): Promise<void>;
}

/** Answers requests at an address. */
export async function serve(api: Api, at: Pick<ServeFlags, "port" | "host">): Promise<Served> {
  const { toNodeListener } = await import("../api/index.ts");
  const server = createServer(toNodeListener(api));
  const url = await listen(server, at);
  const close = async (): Promise<void> => {
    const closed = once(server, "close");
    api.close();
    server.close();
    await closed;
  };
  return { url, close };
}

/** Whether something else listens there. */
export function isTaken(error: unknown): boolean {
  return error instanceof EscapementError && recordError(error.cause).code === "EADDRINUSE";
}

async function listen(server: Server, { port, host }: Pick<ServeFlags, "port" | "host">): Promise<string> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    const { message, code = "" } = recordError(error);
    const advice = ["EADDRINUSE", "EACCES"].includes(code) ? "; choose another port with --port" : "";
    throw new EscapementError("invalid-option", `cannot listen on ${host}:${port}: ${message}${advice}`, {
      cause: error,
    });
  }
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  return `http://${host.includes(":") ? `[${host}]` : host}:${taken}`;
}
