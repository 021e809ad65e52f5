import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { scratchFolder } from "../../test/scratch.ts";
import { cannotLoad } from "./cannot-load.ts";

const needed = { code: "store-missing-client", who: "the store", packages: ["no-such-client"] } as const;

async function messageFor(source: string, ending = "mjs", packages: readonly string[] = needed.packages) {
  const file = join(scratchFolder("client"), `client.${ending}`);
  writeFileSync(file, source);
  const error: unknown = await import(pathToFileURL(file).href)
    .catch(cannotLoad({ ...needed, packages }))
    .catch((thrown: unknown) => thrown);
  assert(error instanceof Error && error.cause !== undefined);
  return error.message;
}

test("a client that is not installed is to be installed, with what is needed beside it", async () => {
  const install = "the store needs the package no-such-client; run: npm install no-such-client";
  assert.equal(await messageFor('import "no-such-client"'), install);
  assert.equal(await messageFor('require("no-such-client")', "cjs"), install);
  assert.equal(
    await messageFor('import "no-such-client"', "mjs", ["other", "no-such-client"]),
    "the store needs the packages other and no-such-client; run: npm install other no-such-client",
  );
});

test("a client that is installed and cannot be loaded says why", async () => {
  const start = "the store cannot load the package no-such-client: ";
  const message = await messageFor('import "no-such-client-core"');
  assert(message.startsWith(`${start}Cannot find package 'no-such-client-core'`), message);
  assert.equal(await messageFor('throw new Error("it needs Node 99")'), `${start}it needs Node 99`);
});

test("a client in a bundle that has no require() is to be external", async () => {
  assert.equal(
    await messageFor(`throw new Error('Dynamic require of "events" is not supported')`),
    'the store cannot load the package no-such-client: Dynamic require of "events" is not supported; mark no-such-client as external in the bundler',
  );
});
