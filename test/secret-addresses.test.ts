import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { systemClock } from "../src/clock.ts";
import { EscapementError } from "../src/errors.ts";
import { silentLogger } from "../src/log.ts";
import { NodeProcess } from "../src/proof/fleet.ts";
import type { NodePlan } from "../src/proof/node-plan.ts";
import { storeTarget } from "../src/proof/store-kind.ts";
import { storeFromUrl } from "../src/stores/open.ts";
import { kafka } from "../src/transports/kafka/index.ts";
import { nats } from "../src/transports/nats/index.ts";
import { escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";

const secret = "hunter2";

const malformed = [
  `postgres://a:${secret}%ff@127.0.0.1/db`,
  `postgres://a:${secret}@127.0.0.1/db%ff`,
  `postgres://a:${secret}#/@127.0.0.1/db`,
  `postgres://a:${secret}@127.0.0.1:port/db`,
  `mysql://a:${secret}%zz@127.0.0.1/db`,
  `mysql://a%zz:${secret}@127.0.0.1/db`,
  `mysql://a:${secret}@127.0.0.1/db%zz`,
  `mysql://a:${secret}#/@127.0.0.1/db`,
  `redis://a:${secret}%zz@127.0.0.1`,
  `redis://a:${secret}@127.0.0.1:port`,
  `redis+sentinel://a:${secret}@127.0.0.1/name%zz`,
  `nowhere://a:${secret}@127.0.0.1`,
];

function isClear(error: unknown): boolean {
  assert(error instanceof EscapementError, `expected an EscapementError, got ${inspect(error)}`);
  assert.equal(error.code, "invalid-option");
  assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), new RegExp(secret));
  return true;
}

describe("an address that cannot be read is refused without showing its password", () => {
  for (const [place, url] of malformed.entries()) {
    test(`store ${place + 1}: ${url.replace(secret, "…")}`, async () => {
      const open = async (): Promise<void> => {
        const factory = await storeFromUrl(url);
        const store = await factory.open({ namespace: "n", clock: systemClock, log: silentLogger });
        await store.migrate();
      };
      await assert.rejects(open(), isClear);
    });
  }

  test("brokers", () => {
    for (const login of [`a:${secret}%zz`, `a%ff:${secret}`]) {
      assert.throws(() => kafka({ brokers: `kafka://${login}@127.0.0.1:1`, topic: "t" }), isClear);
      assert.throws(() => nats({ servers: `nats://${login}@127.0.0.1:1`, subject: "s" }), isClear);
    }
  });

  test("the target of verify", () => {
    for (const url of [`postgres://a:${secret}#/@h/db`, `redis://a:${secret}@h:port`]) {
      assert.throws(() => storeTarget(url), isClear);
    }
  });
});

describe("verify keeps passwords out of the arguments of its processes", () => {
  test("a node's plan is not among them", async () => {
    const password = crypto.randomUUID();
    const plan: NodePlan = {
      name: "n",
      log: join(scratchFolder(), "log"),
      namespace: "n",
      leaseMs: 1_000,
      retryMs: 1_000,
      concurrency: 1,
      store: `redis://:${password}@127.0.0.1:1`,
      pollMs: 1_000,
      inbox: null,
      clockOffsetMs: null,
      tampering: null,
    };
    const node = new NodeProcess(0, "node", plan);
    try {
      const all = execFileSync("ps", ["-A", "-ww", "-o", "args"], { encoding: "utf8" });
      assert.match(all, /proof.node\.ts/);
      assert.doesNotMatch(all, new RegExp(password));
    } finally {
      node.signal("SIGKILL");
      await node.exited;
    }
  });

  test("--store env:NAME reads a variable, and says when it is missing", async () => {
    const { stderr, code } = await escapement(scratchFolder(), "verify", "--store", "env:NOT_THERE");
    assert.equal(code, 2);
    assert.match(stderr, /expected --store env:NOT_THERE to name an environment variable that is set/);
  });
});
