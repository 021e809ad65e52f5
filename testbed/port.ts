import { randomInt } from "node:crypto";
import { connect, createServer } from "node:net";

/**
 * Below the range that systems take the local ports of outgoing connections from: a port of that range could be
 * gone when a killed server comes back to it.
 */
const lowest = 20_000;
const highest = 32_000;

/** A loopback port that nobody listens on, with all of the ports at `offsets` above it. */
export async function freePort(offsets: readonly number[] = []): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(lowest, highest);
    const free = await Promise.all([0, ...offsets].map((offset) => isFree(port + offset)));
    if (free.every(Boolean)) return port;
  }
  throw new Error(`found no free port from ${lowest} to ${highest} in 100 attempts`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}
