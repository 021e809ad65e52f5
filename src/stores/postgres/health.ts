import type { Health } from "../../store/opening.ts";
import { numberOf, recordOf, textsOf } from "./rows.ts";
import { migrations } from "./schema/migrations.ts";
import type { Session } from "./session.ts";

/** The server settings that decide which writes survive a power failure. */
export const durabilitySettings = ["fsync", "synchronous_commit", "full_page_writes"] as const;

/** Every index that the migrations create, by name. */
function expectedIndexes(): string[] {
  return migrations.flatMap(({ sql }) =>
    [...sql.matchAll(/^create (?:unique )?index (\w+)/gm)].map(([, name]) => name ?? ""),
  );
}

/** @param nowMs this node's own time, to compare with the server's. */
export async function health(
  { run, schema, now }: Pick<Session, "run" | "schema" | "now">,
  schemaName: string,
  version: number,
  nowMs: () => number,
): Promise<Health> {
  const askedAtMs = nowMs();
  const answer = recordOf(
    await run(
      `select json_build_object('now', (extract(epoch from clock_timestamp()) * 1000)::bigint,
         'version', current_setting('server_version'),
         'isolation', current_setting('default_transaction_isolation'),
         'settings', (select json_object_agg(name, current_setting(name)) from unnest($1::text::text[]) as name),
         'indexes', (select coalesce(json_agg(c.relname), '[]') from pg_index i join pg_class c on c.oid = i.indexrelid
           where c.relnamespace = to_regnamespace($2) and i.indisvalid))::text as answer`,
      [`{${durabilitySettings.join(",")}}`, schema],
    ),
  );
  const serverMs = numberOf(answer["now"]);
  const indexes = new Set(textsOf(answer["indexes"]));
  const missing = version === 0 ? [] : expectedIndexes().filter((name) => !indexes.has(name));
  const settings = recordOf(answer["settings"]);
  return {
    now: new Date(now ?? serverMs),
    engine: `PostgreSQL ${String(answer["version"])}`,
    schemaVersion: version,
    details: {
      schema: schemaName,
      ...Object.fromEntries(durabilitySettings.map((name) => [name, String(settings[name])])),
      default_transaction_isolation: String(answer["isolation"]),
      "clock difference in ms": String(Math.round(serverMs - (askedAtMs + nowMs()) / 2)),
      "missing indexes": missing.length === 0 ? "none" : missing.join(", "),
    },
    problems: [
      ...missing.map((name) => `the index ${name} is missing or broken: recreate it as in the migrations`),
      ...durabilitySettings
        .filter((name) => settings[name] === "off")
        .map((name) => `${name} is off, so acknowledged writes may be lost in a crash: set ${name} = on`),
    ],
  };
}
