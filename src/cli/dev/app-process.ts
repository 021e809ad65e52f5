import { once } from "node:events";
import { basename, dirname } from "node:path";
import type { Escapement } from "../../app/escapement.ts";
import type { Duration } from "../../duration.ts";
import { recordError } from "../../errors.ts";
import { createStartApp, startApp } from "../commands/start.ts";
import { isTaken, type Served, serve } from "../serve.ts";
import type { Order, Report } from "./app-child.ts";
import { placeOf } from "./place-of.ts";
import { say } from "./say.ts";

/**
 * The process of an app under `escapement dev`. It takes its order as a message, and stops when the parent lets go of it or is gone. It has
 * its own process group, so Ctrl-C reaches the parent only.
 */
const stopping = new AbortController();
const stop = (): void => stopping.abort();
process.once("disconnect", stop).on("SIGTERM", stop).on("SIGINT", stop);
if (!process.connected) stop();
// The terminal may be gone, and then the jobs must still come to their end.
for (const stream of [process.stdout, process.stderr]) stream.on("error", stop);

process.once("message", (order: Order) => {
  run(order).then(
    // Timers and connections of the app's own modules would keep the process.
    () => process.exit(0),
    (thrown: unknown) => {
      const isFinal = thrown instanceof NoDashboard && order.announced === null;
      const error = thrown instanceof NoDashboard ? thrown.cause : thrown;
      const { code, name, message } = recordError(error);
      const place = placeOf(error, dirname(order.config));
      const said = place === null ? message : `${message} (${place})`;
      report({ type: "broken", error: { code: code ?? name, message: said }, isFinal }, () =>
        process.exit(1),
      );
    },
  );
});

/** What is wrong is the port or the environment that dev was given, not a source. */
class NoDashboard extends Error {
  override readonly name = "NoDashboard";
}

async function run({ flags, config, port, mayMove, announced }: Order): Promise<void> {
  // Nothing runs yet that would have to come to an end.
  const leave = (): never => process.exit(0);
  if (stopping.signal.aborted) leave();
  stopping.signal.addEventListener("abort", leave);
  const { app, running } = await createStartApp(flags);
  stopping.signal.removeEventListener("abort", leave);
  const served = await serveDashboard(app, port, mayMove).catch((cause: unknown) => {
    throw new NoDashboard("the dashboard cannot be served", { cause });
  });
  if (served.url !== announced) say(flags.json, "dashboard", { url: served.url }, served.url);
  await startApp(app, flags);
  const count = app.definitions.length;
  say(
    flags.json,
    "running",
    { definitions: count },
    `${count === 1 ? "1 definition" : `${count} definitions`} of ${basename(config)}; stop with Ctrl-C`,
  );
  report({ type: "running", url: served.url });
  if (!stopping.signal.aborted) await once(stopping.signal, "abort");
  if (running.count > 0) {
    const jobs = running.count === 1 ? "1 job" : `${running.count} jobs`;
    say(flags.json, "waiting", { jobs: running.count }, `for ${jobs}, at most ${flags.timeout}`);
  }
  await app.stop({ timeout: flags.timeout as Duration });
  await served.close();
}

async function serveDashboard(app: Escapement, port: number, mayMove: boolean): Promise<Served> {
  const { readTokens } = await import("../../api/index.ts");
  const { createDashboard } = await import("../../dashboard/index.ts");
  const tokens = readTokens(process.env, null);
  const api = createDashboard(app, tokens.length > 0 ? { tokens } : { insecure: true });
  const host = "127.0.0.1";
  try {
    return await serve(api, { host, port });
  } catch (error) {
    if (!mayMove || !isTaken(error)) throw error;
    return await serve(api, { host, port: 0 });
  }
}

function report(message: Report, then: () => void = () => {}): void {
  if (process.connected) process.send?.(message, undefined, undefined, then);
  else then();
}
