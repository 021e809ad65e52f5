import type { Message } from "../../../src/message/message.ts";
import { acknowledged } from "../../../src/message/publish-result.ts";
import { type Destination, idHeader, type OpenTarget } from "./target.ts";

/** Acknowledges in this process, at once: what is left is the cost of store and relay. */
export const nowhereTarget: OpenTarget = async () => ({
  name: "nowhere",
  async describe() {
    return { broker: "none: acknowledged at once, in this process" };
  },
  open: async () => openNowhere(),
  async [Symbol.asyncDispose]() {},
});

export function openNowhere(): Destination {
  const ids: string[] = [];
  const take = (messages: readonly Message[]): void => {
    for (const { headers } of messages) ids.push(headers[idHeader] ?? "");
  };
  return {
    route: {
      destination: "nowhere",
      dispatchTimeoutMs: 300_000,
      transport: {
        kind: "nowhere",
        address: "",
        open: async () => ({
          async publish(messages) {
            take(messages);
            return messages.map(() => acknowledged);
          },
          async close() {},
        }),
      },
    },
    openRaw: async () => ({ publish: async (messages) => take(messages), async [Symbol.asyncDispose]() {} }),
    arrived: async () => ids,
    async [Symbol.asyncDispose]() {},
  };
}
