import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent } from "undici";
import type { Message } from "../../../src/message/message.ts";
import { factsSignatureOf } from "../../../src/transports/http/facts-signature.ts";
import { http } from "../../../src/transports/http/index.ts";
import { readSecrets, signatureOf } from "../../../src/transports/http/signature.ts";
import { within } from "../../audit.ts";
import type { OpenTarget, RawPublisher } from "./target.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
const keys = readSecrets(secret, "secret");
/** As many as the transport keeps. */
const connections = 16;
const deadlineMs = 30_000;

/** A receiver in a process of its own, so that its processor time is not ours. It keeps what it got in memory. */
export const httpTarget: OpenTarget = async () => {
  const child = fork(new URL("./http-receiver.ts", import.meta.url), { execArgv: [] });
  const [port] = await within(deadlineMs, "the start of the receiver", once(child, "message"));
  let paths = 0;
  return {
    name: "http",
    async describe() {
      return { broker: "a receiver of node:http in a process of its own, which keeps ids in memory" };
    },
    async open() {
      paths += 1;
      const path = `/${paths}`;
      const url = `http://127.0.0.1:${port}${path}`;
      return {
        route: http({ url, secret, allow: ["127.0.0.1"], concurrency: connections }),
        openRaw: async () => openRaw(),
        arrived: () => ask(child, path),
        async [Symbol.asyncDispose]() {},
      };
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await within(deadlineMs, "the end of the receiver", once(child, "exit"));
    },
  };
};

async function ask(child: ChildProcess, path: string): Promise<readonly string[]> {
  child.send(path);
  const [ids] = await within(deadlineMs, "the receiver's list", once(child, "message"));
  return ids as string[];
}

/** The bare client, sending the same requests: signed, since a receiver would refuse them otherwise. */
function openRaw(): RawPublisher {
  const agent = new Agent({ connections, pipelining: 1, allowH2: false });
  return {
    async publish(messages) {
      await Promise.all(messages.map((message) => post(agent, message)));
    },
    async [Symbol.asyncDispose]() {
      await agent.destroy();
    },
  };
}

function post(agent: Agent, message: Message): Promise<void> {
  const { destination, key, dedupeId: id, body } = message;
  const { origin, pathname: path } = new URL(destination);
  const timestamp = Math.floor(Date.now() / 1_000);
  const facts = { ...message.headers, "escapement-key": key };
  const headers = {
    ...facts,
    "user-agent": "escapement",
    "escapement-signature": factsSignatureOf({ id, timestamp, body }, facts, keys),
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatureOf({ id, timestamp, body }, keys),
  };
  return new Promise((resolve, reject) => {
    agent.dispatch(
      { origin, path, method: "POST", headers, body },
      {
        onRequestStart: () => {},
        onResponseData: () => {},
        onResponseStart: (_, status) => {
          if (status !== 204) reject(new Error(`the receiver said ${status}`));
        },
        onResponseEnd: () => resolve(),
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}
