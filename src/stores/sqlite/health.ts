import { statSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import type { Health } from "../../store.ts";
import type { Connection } from "./connection.ts";
import { schemaVersion } from "./migrate.ts";
import { numberOf, textOf } from "./rows.ts";

const synchronousNames = ["off", "normal", "full", "extra"];

export function health(connection: Connection, path: string, clock: Clock): Health {
  const version = textOf(connection.get("select sqlite_version() as version")?.["version"]);
  const synchronous = numberOf(connection.get("pragma synchronous")?.["synchronous"]);
  return {
    now: new Date(clock.now()),
    engine: `SQLite ${version} (node:sqlite)`,
    schemaVersion: schemaVersion(connection),
    details: {
      file: path,
      "size in bytes": String(path === ":memory:" ? 0 : statSync(path).size),
      "journal mode": textOf(connection.get("pragma journal_mode")?.["journal_mode"]),
      synchronous: synchronousNames[synchronous] ?? String(synchronous),
    },
  };
}
