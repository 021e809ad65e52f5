import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { FaultProxy } from "../src/proof/proxy.ts";
import { until } from "../src/testing/until.ts";

const seen: string[] = [];
const echo = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    seen.push(String(chunk));
    socket.write(chunk);
  });
  socket.on("end", () => socket.end("bye"));
});
let target = "";

before(async () => {
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  target = `tcp://127.0.0.1:${(echo.address() as AddressInfo).port}`;
});
after(() => echo.close());

test("bytes and ends pass in both directions", async () => {
  await using proxy = await FaultProxy.start(target);
  const socket = await dial(proxy);
  assert.equal(await exchange(socket, "hello"), "hello");
  const big = Buffer.alloc(20 * 1024 * 1024, "x");
  socket.write(big);
  let received = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    received += (chunk as Buffer).length;
    if (received === big.length) break;
  }
  socket.end();
  assert.equal(await nextOf(socket), "bye");
});

test("a latency delays each direction, keeps the order, and does not add up over pipelined messages", async () => {
  await using proxy = await FaultProxy.start(target);
  const socket = await dial(proxy);
  proxy.delay(1_000);
  const begunAt = performance.now();
  let received = "";
  socket.on("data", (chunk) => (received += String(chunk)));
  for (const text of ["a", "b", "c", "d"]) {
    socket.write(text);
    await new Promise(setImmediate);
  }
  await until("all is back", () => received === "abcd");
  const tookMs = performance.now() - begunAt;
  // Four times both ways, one after the other, would be eight seconds.
  assert(tookMs >= 1_999 && tookMs < 7_999, `took ${tookMs} ms`);
  socket.destroy();
});

test("a cut resets all connections, and new ones for as long as it lasts", async () => {
  await using proxy = await FaultProxy.start(target);
  const socket = await dial(proxy);
  await exchange(socket, "hello");
  proxy.cut(60_000);
  assert.equal(await endOf(socket), "ECONNRESET");
  // The reset may come before the client has noticed that it is connected.
  assert.equal(await dial(proxy).then(endOf, ({ code }) => code), "ECONNRESET");
  await until("nobody is connected", () => proxy.connections === 0);
  // It ends by itself.
  proxy.cut(100);
  const again = await untilExchanged(proxy);
  proxy.cut();
  assert.equal(await endOf(again), "ECONNRESET");
  const last = await dial(proxy);
  assert.equal(await exchange(last, "hello"), "hello");
  last.destroy();
});

test("a black hole takes connections and gives no answer until it is over; then what was sent arrives", async () => {
  await using proxy = await FaultProxy.start(target);
  const old = await dial(proxy);
  await exchange(old, "hello");
  const begunAt = performance.now();
  proxy.blackHole(300);
  const young = await dial(proxy);
  seen.length = 0;
  assert.deepEqual(await Promise.all([exchange(old, "old"), exchange(young, "young")]), ["old", "young"]);
  assert(performance.now() - begunAt >= 299);
  assert.deepEqual(seen.toSorted(), ["old", "young"]);
  old.destroy();
  young.destroy();
});

test("dropped replies: the server gets the request, the client no answer, and the connection ends afterwards", async () => {
  await using proxy = await FaultProxy.start(target);
  const socket = await dial(proxy);
  const idle = await dial(proxy);
  await exchange(idle, "before");
  seen.length = 0;
  proxy.dropReplies(3_000);
  const replies: string[] = [];
  socket.on("data", (chunk) => replies.push(String(chunk)));
  const ended = endOf(socket);
  socket.write("pay");
  await until("the server has it", () => seen.includes("pay"));
  assert.equal(await ended, "ECONNRESET");
  assert.deepEqual(replies, []);
  assert.equal(await exchange(idle, "after"), "after");
  idle.destroy();
});

test("a target that refuses ends the connection, and faults have a bound", async () => {
  await using proxy = await FaultProxy.start("tcp://127.0.0.1:1");
  assert.equal(await endOf(await dial(proxy)), "ECONNRESET");
  assert.throws(() => proxy.blackHole(Number.POSITIVE_INFINITY), /expected a time/);
  assert.throws(() => proxy.delay(-1), /expected a time/);
});

async function dial(proxy: FaultProxy): Promise<Socket> {
  const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

async function exchange(socket: Socket, text: string): Promise<string> {
  const answer = nextOf(socket);
  socket.write(text);
  return answer;
}

async function nextOf(socket: Socket): Promise<string> {
  const [chunk] = await once(socket, "data");
  return String(chunk);
}

/** How the connection ended: an error code, or "closed". */
function endOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
    socket.once("close", () => resolve("closed"));
    socket.resume();
  });
}

async function untilExchanged(proxy: FaultProxy): Promise<Socket> {
  for (;;) {
    const socket = await dial(proxy).catch(() => undefined);
    const answer = socket && (await Promise.race([exchange(socket, "again").catch(() => ""), endOf(socket)]));
    if (socket && answer === "again") return socket;
  }
}
