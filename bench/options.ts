/** The command was not understood. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A number of the command line. */
export interface Size {
  readonly default: number;
  readonly max: number;
}

export function readSize(name: string, { default: usual, max }: Size, given: string | undefined): number {
  const value = Number(given ?? usual);
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new UsageError(`expected --${name} to be an integer from 1 to ${max}, got ${given}`);
}

export function readDurability(given: string): "full" | "normal" {
  if (given === "full" || given === "normal") return given;
  throw new UsageError(`expected --durability to be full or normal, got ${given}`);
}

/** The one of these that is meant. */
export function pick<T>(option: string, from: Readonly<Record<string, T>>, name: string): T {
  const found = Object.hasOwn(from, name) ? from[name] : undefined;
  if (found !== undefined) return found;
  throw new UsageError(`expected ${option} to be one of ${Object.keys(from).join(", ")}, got ${name}`);
}
