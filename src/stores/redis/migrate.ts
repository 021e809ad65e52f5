import { EscapementError } from "../../errors.ts";
import type { PendingMigration } from "../../store.ts";
import { bufferOf, type Space } from "./space.ts";

/** The layout of keys and records that this library writes. */
export const layoutVersion = 1;

/**
 * Makes the namespace where it is missing, in every Redis slot, and refuses one that this library would misunderstand or that has
 * another number of slots.
 */
export async function migrate(space: Space): Promise<void> {
  for (const index of space.everySlot) {
    checkLayout(space, (await space.list("migrate", index, layoutVersion, space.slots)).map(String));
  }
}

/** Whether the namespace is there. */
export async function isMade(space: Space): Promise<boolean> {
  const key = `${space.keyPrefix(0)}meta`;
  const answer = await space.link.call("HMGET", [key, "version", "breaking", "slots"]);
  const values = Array.isArray(answer) ? answer.map((value) => String(bufferOf(value))) : [];
  if ((values[0] ?? "") === "") return false;
  checkLayout(space, values);
  return true;
}

/** For Redis these are commands of redis-cli. */
export async function pendingMigrations(space: Space): Promise<readonly PendingMigration[]> {
  if (await isMade(space)) return [];
  const commands = space.everySlot.map(
    (index) =>
      `HSET "${space.keyPrefix(index)}meta" version ${layoutVersion} breaking ${layoutVersion} slots ${space.slots}`,
  );
  return [{ name: "0001-namespace", sql: commands.join("\n") }];
}

export function missingNamespace(space: Space): EscapementError {
  return new EscapementError(
    "store-unmigrated",
    `Redis store ${space.link.where}: this namespace is not there; check the address and the namespace, or run "escapement migrate" to make it`,
  );
}

function checkLayout(space: Space, [version, breaking, slots]: readonly string[]): void {
  if (Number(breaking) > layoutVersion) {
    throw new EscapementError(
      "store-newer",
      `Redis store ${space.link.where}: this namespace has layout ${version}, this library knows layouts up to ${layoutVersion}; upgrade escapement in this process`,
    );
  }
  if (Number(slots) !== space.slots) {
    throw new EscapementError(
      "invalid-option",
      `expected slots to be ${slots}, as this namespace was made with, got ${space.slots}; the number of slots never changes`,
    );
  }
}
