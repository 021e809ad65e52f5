import { Redis } from "ioredis";

/** A plain connection, for what a person would do to the server. */
export async function admin(
  url: string,
): Promise<AsyncDisposable & { call(command: string, ...args: string[]): Promise<unknown> }> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null });
  client.on("error", () => undefined);
  await client.connect();
  return {
    call: (command, ...args) => client.call(command, args),
    async [Symbol.asyncDispose]() {
      client.disconnect();
    },
  };
}
