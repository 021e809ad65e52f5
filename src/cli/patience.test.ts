import assert from "node:assert/strict";
import { test } from "node:test";
import { EscapementError } from "../errors.ts";
import { withRetries } from "../runtime/transient.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { CommandPatience } from "./patience.ts";

const away = (message: string) => new EscapementError("store-unavailable", message);

test("calls at once and inside one another share one end, and show each error once with how long is left", async () => {
  const clock = new VirtualClock();
  const shown: [string, number][] = [];
  const patience = new CommandPatience(5_000, (error, leftMs) =>
    shown.push([(error as Error).message, leftMs]),
  );
  const runtime = { clock, random: () => 0, newId: () => "", patience };
  let tries = 0;
  const call = () =>
    withRetries(runtime, () =>
      withRetries(runtime, () => {
        tries += 1;
        return Promise.reject(away(tries < 10 ? "refused" : "still starting"));
      }),
    );
  const ends = Promise.allSettled([call(), call(), call()]);
  await clock.advance(6_000);
  for (const end of await ends) assert.equal(end.status, "rejected");
  assert.deepEqual(
    shown.map(([message]) => message),
    ["refused", "still starting"],
  );
  assert.equal(shown[0]?.[1], 5_000);
  assert(tries > 20, `${tries} tries`);
});

test("an error that does not pass ends it at once", async () => {
  const patience = new CommandPatience(5_000, () => assert.fail("nothing to wait for"));
  const runtime = { clock: new VirtualClock(), random: () => 0, newId: () => "", patience };
  const call = withRetries(runtime, () => Promise.reject(new EscapementError("not-found", "no")));
  await assert.rejects(call, { code: "not-found" });
});
