import { InvalidArgumentError } from "commander";

const highest = 65_535;

/** Where to listen; 0 takes a free one. */
export function portNumber(text: string): number {
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (port >= 0 && port <= highest) return port;
  throw new InvalidArgumentError(`expected a port from 0 to ${highest}`);
}
