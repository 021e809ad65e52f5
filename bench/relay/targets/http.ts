import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import type { Message } from "../../../src/message.ts";
import { http } from "../../../src/transports/http/index.ts";
import { within } from "../../audit.ts";
import type { OpenTarget, RawPublisher } from "./target.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
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

function openRaw(): RawPublisher {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: "lifo" });
  return {
    async publish(messages) {
      await Promise.all(messages.map((message) => post(agent, message)));
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
    },
  };
}

function post(agent: Agent, { destination, headers, body }: Message): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = {
      method: "POST",
      agent,
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
    };
    request(destination, options, (response) => {
      if (response.statusCode !== 204) reject(new Error(`the receiver said ${response.statusCode}`));
      response.resume().once("close", resolve);
    })
      .on("error", reject)
      .end(body);
  });
}
