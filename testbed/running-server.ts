import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serverAccount } from "./account.ts";
import type { Daemon } from "./daemon.ts";
import type { ServerKind, Site } from "./server-kind.ts";
import { provide, type Toolbox } from "./software.ts";

/** A server that this test bed uses: started by it, or given by URL. */
export interface RunningServer {
  readonly kind: ServerKind;
  readonly url: string;
  readonly version: string;
  readonly source: "environment" | Toolbox["source"];
  /** A variable, a folder, packages or an image: for people to read. */
  readonly from: string;
  /** What asks it. */
  readonly tools: Toolbox | undefined;
  /** Empty for a server that we did not start. */
  readonly daemons: readonly Daemon[];
  /** Databases that were made on a server that outlives us. */
  readonly borrowed: Set<string>;
  /** Ends it and removes its data; never touches a server that we did not start. */
  discard(): Promise<void>;
}

/** A server that the environment gives by its URL. Wrong URLs are errors: somebody wanted this very server. */
export async function useGiven(kind: ServerKind, url: string): Promise<RunningServer> {
  const tools = kind.client && (await provide([kind.client]));
  if (typeof tools === "string")
    throw new Error(`${kind.variable} needs a client to ask that server: ${tools}`);
  const borrowed = new Set<string>();
  return {
    kind,
    url,
    version: await kind.version(url, tools),
    source: "environment",
    from: kind.variable,
    tools,
    daemons: [],
    borrowed,
    async discard() {
      for (const name of borrowed) await kind.reclaim?.(url, name, tools);
    },
  };
}

/** Starts a server with its own folder below `parent`. */
export async function startOwn(
  kind: ServerKind,
  tools: Toolbox,
  parent: string,
  upstreamUrl: string | undefined,
): Promise<RunningServer> {
  const site = createSite(tools, join(parent, `${kind.name}-${randomBytes(4).toString("hex")}`), upstreamUrl);
  const discard = async () => {
    await Promise.all(site.daemons.map((daemon) => daemon.discard()));
    rmSync(site.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  try {
    const { url } = await kind.start(site);
    return {
      kind,
      url,
      version: tools.version,
      source: tools.source,
      from: tools.from,
      tools,
      daemons: site.daemons,
      borrowed: new Set(),
      discard,
    };
  } catch (error) {
    await discard();
    throw error;
  }
}

function createSite(tools: Toolbox, folder: string, upstreamUrl: string | undefined): Site {
  const account = serverAccount();
  const own = (path: string) => {
    if (account) chownSync(path, account.uid, account.gid);
    return path;
  };
  const makeFolder = (path: string) => {
    mkdirSync(path, { mode: 0o700 });
    return own(path);
  };
  return {
    tools,
    folder: makeFolder(folder),
    makeFolder: (name) => makeFolder(join(folder, name)),
    writeFile(name, text) {
      const path = join(folder, name);
      writeFileSync(path, text, { mode: 0o600 });
      return own(path);
    },
    password: randomBytes(12).toString("hex"),
    upstreamUrl,
    daemons: [],
  };
}
