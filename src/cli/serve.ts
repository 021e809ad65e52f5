import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Command } from "commander";
import type { Api, ApiOptions } from "../api/index.ts";
import type { Escapement } from "../app/escapement.ts";
import { EscapementError, recordError } from "../errors.ts";
import { type AppFlags, appCommand, createApp } from "./app.ts";
import { wholeInteger } from "./commands/jobs-edit.ts";
import { several } from "./filter-flags.ts";
import { print } from "./output.ts";
import { stopOnSignal } from "./stop-on-signal.ts";

interface ServeFlags extends AppFlags {
  readonly port: number;
  readonly host: string;
  readonly tokensFile?: string;
  readonly basePath?: string;
  readonly redact?: readonly string[];
}

/** What is served. */
export interface Served {
  readonly name: string;
  readonly about: string;
  readonly what: string;
  readonly port: number;
  create(app: Escapement, options: ApiOptions): Promise<Api>;
}

/** A command that serves requests about an app. */
export function serveCommand({ name, about, what, port, create }: Served): Command {
  return appCommand(name, about)
    .option("--port <n>", "where to listen; 0 takes a free one", wholeInteger, port)
    .option("--host <address>", "the address to listen at; another than loopback needs tokens", "127.0.0.1")
    .option(
      "--tokens-file <file>",
      "tokens, a line each: role:actor:token (also: ESCAPEMENT_API_TOKENS); the role is read, operate or admin",
    )
    .option("--base-path <path>", "a prefix of all routes, such as /escapement")
    .option("--redact <key>", "mask this key of inputs and results in answers; several: repeat it", several)
    .action(async (flags: ServeFlags) => {
      const { readTokens, toNodeListener } = await import("../api/index.ts");
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
      const server = createServer(toNodeListener(api));
      const url = `${await listen(server, flags)}${flags.basePath ?? ""}`;
      const stopping = stopOnSignal();
      print(flags.json, { url, hasTokens: tokens.length > 0 }, () => [
        `${what} is at ${url}; stop it with Ctrl-C`,
        ...(tokens.length > 0 ? [] : ["it has no tokens, so it answers this machine only, as admin"]),
      ]);
      if (!stopping.aborted) await once(stopping, "abort");
      await close(server, api);
    });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function openToAll(host: string): EscapementError {
  return new EscapementError(
    "invalid-option",
    `expected tokens, since ${host} can be reached by others: set ESCAPEMENT_API_TOKENS or --tokens-file, or listen at 127.0.0.1`,
  );
}

async function listen(server: Server, { port, host }: ServeFlags): Promise<string> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    throw new EscapementError(
      "invalid-option",
      `cannot listen at ${host}:${port}: ${recordError(error).message}`,
    );
  }
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  return `http://${host.includes(":") ? `[${host}]` : host}:${taken}`;
}

/** Answers under way may end; streams are ended, and connections that only wait are closed. */
async function close(server: Server, api: Api): Promise<void> {
  const closed = once(server, "close");
  api.close();
  server.close();
  await closed;
}
