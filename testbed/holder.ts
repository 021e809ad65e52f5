// The process that owns the servers of one run: `node testbed/holder.ts`. It prints the path of its socket, gives
// servers to whoever asks there, and ends with everything that it has started when its standard input is closed, which
// the kernel does for an owner that was killed.

import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type Answer, type Description, type Envelope, type Request, receive, send } from "./protocol.ts";
import { type Allotment, Rack } from "./rack.ts";
import type { RunningServer } from "./running-server.ts";
import type { ServerKind } from "./server-kind.ts";
import { kinds } from "./servers/index.ts";

const rack = new Rack((line) => process.stderr.write(`testbed: ${line}\n`));
const listener = createServer(serve);

/** The tests may close our output before they end, and that must not end the servers in disorder. */
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});
process.stdin.resume();
process.stdin.once("close", close);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, close);

const path = join(rack.folder, "socket");
listener.listen(path, () => process.stdout.write(`${path}\n`));

let isClosing = false;
function close(): void {
  if (isClosing) return;
  isClosing = true;
  listener.close();
  void rack.close().finally(() => {
    for (const [name, reason] of rack.missing) {
      process.stderr.write(`testbed: tests on ${name} were skipped: ${reason}\n`);
    }
    process.exit();
  });
}

/** One connection is one process of the run; what is private to it ends with it. */
function serve(socket: Socket): void {
  const opened: { allotment: Allotment; isPrivate: boolean }[] = [];
  const handle = async (request: Request): Promise<Answer> => {
    if (isClosing) return { error: "the test bed is closing" };
    if (request.verb !== "open") {
      const { allotment, isPrivate } = opened[request.key] ?? {};
      if (!allotment || !isPrivate)
        return { error: "only a private server can be stopped: open it with { private: true }" };
      await act(allotment.server, request);
      return { done: true };
    }
    const { kind: name, isPrivate } = request;
    const kind: ServerKind = kinds[name];
    const allotment = isPrivate ? await rack.openPrivate(kind) : await rack.open(kind);
    if (typeof allotment === "string") return { missing: allotment, isOptional: kind.isOptional === true };
    opened.push({ allotment, isPrivate });
    if (socket.destroyed && isPrivate) await rack.discard(allotment.server);
    return { server: describe(allotment, opened.length - 1) };
  };
  receive<Request>(socket, ({ id, body }: Envelope<Request>) => {
    void handle(body)
      .catch((error: Error) => ({ error: error.message }))
      .then((answer) => send(socket, { id, body: answer }));
  });
  socket.on("error", () => {});
  socket.once("close", () => {
    for (const { allotment, isPrivate } of opened) if (isPrivate) void rack.discard(allotment.server);
  });
}

async function act(server: RunningServer, { verb, part }: Exclude<Request, { verb: "open" }>): Promise<void> {
  const chosen = server.daemons.filter(({ name }) => part === undefined || name === part);
  if (chosen.length === 0) {
    throw new Error(
      `expected a part of ${server.kind.name} (${server.daemons.map(({ name }) => name)}), got "${part}"`,
    );
  }
  if (verb === "stop" && part === undefined) return rack.discard(server);
  // What depends on others was started after them.
  for (const daemon of chosen.toReversed()) {
    if (verb === "restart" || verb === "stop") await daemon.stop();
    else await daemon[verb]();
  }
  if (verb !== "restart") return;
  if (server.kind.startsTogether) await Promise.all(chosen.map((daemon) => daemon.start()));
  else for (const daemon of chosen) await daemon.start();
}

function describe({ server, name, url }: Allotment, key: number): Description {
  const { version, source, daemons } = server;
  return { key, name, url, version, source, parts: daemons.map((daemon) => daemon.name) };
}
