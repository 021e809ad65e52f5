import type { Command } from "commander";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print } from "../output.ts";

interface MigrateFlags extends AppFlags {
  readonly dryRun?: boolean;
}

export function migrateCommand(): Command {
  return appCommand("migrate", "create or upgrade the store's schema")
    .option("--dry-run", "change nothing, print what would be run")
    .action(async (flags: MigrateFlags) => {
      const dryRun = flags.dryRun === true;
      const migrations = await withApp(flags, dryRun ? "ask" : "make", (app) => app.migrate({ dryRun }), {
        migrate: false,
      });
      print(flags.json, { dryRun, migrations }, () => {
        if (migrations.length === 0) return ["the schema is up to date"];
        if (!dryRun) return migrations.map(({ name }) => `applied ${name}`);
        return migrations.flatMap(({ name, sql }) => [`-- ${name}`, ...sql.split("\n")]);
      });
    });
}
