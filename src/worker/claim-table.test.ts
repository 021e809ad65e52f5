import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { ClaimTable, ClaimTableReader, type Sheet } from "./claim-table.ts";
import type { Renewal } from "./renewer.ts";

function tableAndReader(): { readonly table: ClaimTable; readonly reader: ClaimTableReader } {
  const reader = new ClaimTableReader();
  return { table: new ClaimTable((sheet) => reader.add(sheet)), reader };
}

const claim = (id: string, token = 1, timeoutAtMs: number | null = null): Renewal => ({
  id,
  token,
  timeoutAtMs,
});

test("what is put is read, whatever its id, until it is removed", () => {
  const { table, reader } = tableAndReader();
  const claims = [claim("a"), claim("ü😀\u0000\ud800", 7, 12.5), claim("x".repeat(255), 2 ** 31), claim("")];
  for (const one of claims) table.put(one);
  assert.deepEqual(reader.read(), claims);
  table.remove(claim("a", 2));
  assert.equal(reader.read().length, 4, "another claim of the same job is left alone");
  for (const one of claims) table.remove(one);
  assert.deepEqual(reader.read(), []);
});

test("a newer claim of a job stands in the place of the older one", () => {
  const { table, reader } = tableAndReader();
  table.put(claim("a", 1));
  table.put(claim("a", 2));
  assert.deepEqual(reader.read(), [claim("a", 2)]);
  table.remove(claim("a", 1));
  assert.deepEqual(reader.read(), [claim("a", 2)]);
});

test("it grows as far as it must, and uses places again", () => {
  const { table, reader } = tableAndReader();
  const ids = Array.from({ length: 1_000 }, (_, n) => `job ${n}`);
  for (let round = 0; round < 3; round += 1) {
    for (const id of ids) table.put(claim(id, round));
    assert.deepEqual(new Set(reader.read().map(({ id }) => id)), new Set(ids));
    for (const id of ids) table.remove(claim(id, round));
  }
  assert.deepEqual(reader.read(), []);
});

/** Reads all the time and says what it has seen that was never put: an id, a token and a timeout belong together. */
const watcher = `
  import { parentPort, workerData } from "node:worker_threads";
  const { ClaimTableReader } = await import(workerData.module);
  const reader = new ClaimTableReader();
  reader.add(workerData.sheet);
  parentPort.postMessage("ready");
  let torn = 0, seen = 0;
  while (Atomics.load(workerData.over, 0) === 0) {
    for (const { id, token, timeoutAtMs } of reader.read()) {
      seen += 1;
      if (id !== String(token).repeat(8) || timeoutAtMs !== token * 2) torn += 1;
    }
  }
  parentPort.postMessage({ torn, seen });
`;

test("another thread never reads the half of a claim", async () => {
  const sheets: Sheet[] = [];
  const table = new ClaimTable((sheet) => void sheets.push(sheet));
  const put = (token: number): Renewal => {
    const one = { id: String(token).repeat(8), token, timeoutAtMs: token * 2 };
    table.put(one);
    return one;
  };
  table.remove(put(1));
  const over = new Int32Array(new SharedArrayBuffer(4));
  const module = new URL("./claim-table.ts", import.meta.url).href;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(watcher)}`), {
    workerData: { sheet: sheets[0], over, module },
  });
  const message = (): Promise<unknown> => new Promise((resolve) => thread.once("message", resolve));
  await message();
  let token = 1;
  for (const until = Date.now() + 500; Date.now() < until; ) {
    const held = Array.from({ length: 20 }, (_, n) => put(token + n));
    token += held.length;
    for (const one of held) table.remove(one);
  }
  Atomics.store(over, 0, 1);
  const { torn, seen } = (await message()) as { torn: number; seen: number };
  assert.equal(torn, 0);
  assert(seen > 0, "it has read nothing at all");
});
