import {
  type ClientRequest,
  type Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from "node:http";
import { type Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "../../clock.ts";
import type { Deadline } from "../../deadline.ts";
import type { AddressGuard } from "./address-guard.ts";

export interface Posting {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly clock: Clock;
  readonly deadline: Deadline;
  readonly guard: AddressGuard;
  readonly agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** The beginning of the body. */
  readonly text: string;
}

export interface Failure {
  readonly error: Error;
  /** Whether the other side may have got the request. */
  readonly maybeSent: boolean;
}

/** More than this is not read: the status says all that is needed. */
const mostBodyBytes = 64 * 1_024;
const keptTextLength = 300;

/** Sends one request and never rejects. */
export function post(posting: Posting): Promise<Answer | Failure> {
  const { url, headers, body, clock, deadline, guard, agents } = posting;
  return new Promise((resolve) => {
    let maybeSent = false;
    let request: ClientRequest | null = null;
    const fail = (error: Error): void => {
      cancel();
      resolve({ error, maybeSent });
    };
    const cancel = clock.after(deadline.leftMs, () => request?.destroy(new Error("no answer in time")));
    try {
      guard.checkHost(url.hostname);
      const isTls = url.protocol === "https:";
      const options = {
        method: "POST",
        agent: isTls ? agents.https : agents.http,
        lookup: guard.lookup,
        headers: { ...headers, "content-length": Buffer.byteLength(body), "user-agent": "escapement" },
      };
      request = isTls ? httpsRequest(url, options) : httpRequest(url, options);
      request.once("socket", (socket: Socket) => {
        // A connection that was kept is ready: the request is on its way at once.
        if (request?.reusedSocket) maybeSent = true;
        else socket.once(isTls ? "secureConnect" : "connect", () => (maybeSent = true));
      });
      request.on("error", fail);
      request.once("response", (response) => {
        // The status is known: whatever breaks now changes nothing.
        request?.off("error", fail).on("error", () => {});
        void beginningOf(response).then((text) => {
          cancel();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      });
      request.end(body);
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

/** Reads the rest, so that the connection can be used again, but not more than is decent. Its end is the end, in whatever way. */
function beginningOf(response: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let bytes = 0;
    let text = "";
    response.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (text.length < keptTextLength) text += chunk.toString("latin1");
      if (bytes > mostBodyBytes) response.destroy();
    });
    response.on("error", () => {});
    response.once("close", () => resolve(text.slice(0, keptTextLength)));
  });
}
