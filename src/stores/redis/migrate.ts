import { EscapementError } from "../../errors.ts";
import type { PendingMigration } from "../../store/opening.ts";
import { bufferOf, type Session } from "./session.ts";

/** The layout of keys and records that this library writes. */
export const layoutVersion = 1;

/**
 * Creates the namespace if it is missing, in every Redis slot, and refuses one that this library would misunderstand or that has
 * another number of slots.
 */
export async function migrate(session: Session): Promise<void> {
  for (const index of session.everySlot) {
    checkLayout(session, (await session.list("migrate", index, layoutVersion, session.slots)).map(String));
  }
}

/** Whether the namespace exists. */
export async function isMade(session: Session): Promise<boolean> {
  const key = `${session.keyPrefix(0)}meta`;
  const answer = await session.link.call("HMGET", [key, "version", "breaking", "slots"]);
  const values = Array.isArray(answer) ? answer.map((value) => String(bufferOf(value))) : [];
  if ((values[0] ?? "") === "") return false;
  checkLayout(session, values);
  return true;
}

/** For Redis these are commands of redis-cli. */
export async function pendingMigrations(session: Session): Promise<readonly PendingMigration[]> {
  if (await isMade(session)) return [];
  const commands = session.everySlot.map(
    (index) =>
      `HSET "${session.keyPrefix(index)}meta" version ${layoutVersion} breaking ${layoutVersion} slots ${session.slots}`,
  );
  return [{ name: "0001-namespace", sql: commands.join("\n") }];
}

export function missingNamespace(session: Session): never {
  throw new EscapementError(
    "store-unmigrated",
    `Redis store ${session.link.where}: this namespace does not exist; check the address and the namespace, or run "escapement migrate" to create it`,
  );
}

function checkLayout(session: Session, [version, breaking, slots]: readonly string[]): void {
  if (Number(breaking) > layoutVersion) {
    throw new EscapementError(
      "store-newer",
      `Redis store ${session.link.where}: this namespace has layout ${version}, this library knows layouts up to ${layoutVersion}; upgrade escapement in this process`,
    );
  }
  if (Number(slots) !== session.slots) {
    throw new EscapementError(
      "invalid-option",
      `expected slots to be ${slots}, as this namespace was created with, got ${session.slots}; the number of slots never changes`,
    );
  }
}
