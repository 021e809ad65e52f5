import { statSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import type { Health } from "../../store/opening.ts";
import type { Connection } from "./connection/connection.ts";
import type { Engine } from "./connection/engine.ts";
import { readMigrations, schemaVersion } from "./migrate.ts";
import { numberOf, textOf } from "./rows.ts";

const synchronousNames = ["off", "normal", "full", "extra"];

export function health({ connection, path, problems }: Engine, clock: Clock): Health {
  const version = textOf(connection.get("select sqlite_version() as version")?.["version"]);
  const synchronous = numberOf(connection.get("pragma synchronous")?.["synchronous"]);
  return {
    now: new Date(clock.now()),
    engine: `SQLite ${version} (node:sqlite)`,
    schemaVersion: schemaVersion(connection),
    details: {
      file: path,
      "size in bytes": String(path === ":memory:" ? 0 : sizeOf(path) + sizeOf(`${path}-wal`)),
      "journal mode": textOf(connection.get("pragma journal_mode")?.["journal_mode"]),
      synchronous: synchronousNames[synchronous] ?? String(synchronous),
    },
    problems: [
      ...problems,
      ...missingIndexes(connection).map(
        (name) => `the index ${name} is missing: recreate it as in migrations/0001-core.sql`,
      ),
    ],
  };
}

/** What was written lately is in the write-ahead log, until a checkpoint moves it. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Indexes that the migrations create and that are missing now. */
function missingIndexes(connection: Connection): string[] {
  if (schemaVersion(connection) === 0) return [];
  const present = new Set(
    connection.all("select name from sqlite_schema where type = 'index'").map((row) => textOf(row["name"])),
  );
  const made = readMigrations().flatMap(({ sql }) => [...sql.matchAll(/create (?:unique )?index (\w+)/g)]);
  return made.flatMap(([, name]) => (name === undefined || present.has(name) ? [] : name));
}
