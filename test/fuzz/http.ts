import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { httpEndpoint } from "../../src/consumer/index.ts";
import { factsSignatureHeader, factsSignatureOf } from "../../src/transports/http/facts-signature.ts";
import { readSecrets, signatureOf } from "../../src/transports/http/signature.ts";
import { secret } from "../../src/transports/http/test/place.ts";
import type { RawMessage } from "./broken-messages.ts";
import type { OpenTarget } from "./target.ts";

const keys = readSecrets(secret, "secret");
const atOnce = 20;
/** A request that does not end is waited for by the server, and not here. */
const patientMs = 10_000;

/** A request as bytes, signed over what the server will make of them: whoever has the secret may be as broken as anybody. */
function requestOf({ headers, key, body }: RawMessage, port: number): Buffer {
  const text = (value: Buffer | null): string => (value ?? Buffer.alloc(0)).toString("latin1");
  const given = headers.map(([name, value]) => [text(name), text(value)] as const);
  if (key !== null) given.push(["escapement-key", encodeURIComponent(key.toString())]);
  const payload = body ?? Buffer.alloc(0);
  const facts = Object.fromEntries(given.map(([name, value]) => [name.toLowerCase(), value.trim()]));
  const id = facts["idempotency-key"] ?? "";
  const timestamp = Math.floor(Date.now() / 1_000);
  const signed = { id, timestamp, body: payload.toString() };
  const lines = [
    ["POST /jobs HTTP/1.1"],
    [`host: 127.0.0.1:${port}`, "connection: close", `content-length: ${payload.length}`],
    given.map(([name, value]) => `${name}: ${value}`),
    [
      `webhook-id: ${id}`,
      `webhook-timestamp: ${timestamp}`,
      `webhook-signature: ${signatureOf(signed, keys)}`,
    ],
    [`${factsSignatureHeader}: ${factsSignatureOf(signed, facts, keys)}`],
  ].flat();
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), payload]);
}

/** The status of the answer; null when the server hung up without one. */
async function send(port: number, request: Buffer): Promise<number | null> {
  const socket = connect(port, "127.0.0.1");
  let said = "";
  socket.on("data", (data) => {
    said += data;
  });
  socket.on("error", () => {});
  socket.setTimeout(patientMs, () => socket.destroy());
  // A half-closed connection would be a sender that has gone.
  socket.write(request);
  await new Promise((resolve) => socket.once("close", resolve));
  const status = /^HTTP\/1\.1 (\d{3})/.exec(said)?.[1];
  return status === undefined ? null : Number(status);
}

export const httpTarget: OpenTarget = {
  skip: async () => false,
  async open(handlers) {
    const endpoint = httpEndpoint({ ...handlers, secret });
    const server = createServer(endpoint).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const answers = new Map<number | null, number>();
    let ended = 0;
    return {
      async publish(messages) {
        for (let from = 0; from < messages.length; from += atOnce) {
          const statuses = await Promise.all(
            messages.slice(from, from + atOnce).map((message) => send(port, requestOf(message, port))),
          );
          for (const status of statuses) answers.set(status, (answers.get(status) ?? 0) + 1);
          ended += statuses.length;
        }
        return messages.length;
      },
      ended: () => ended,
      describe: () =>
        `answers: ${[...answers].map(([status, many]) => `${many} × ${status ?? "hung up"}`).join(", ")}`,
      async [Symbol.asyncDispose]() {
        await endpoint.stop();
        server.closeAllConnections();
        server.close();
      },
    };
  },
};
