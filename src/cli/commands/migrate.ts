import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import type { PendingMigration } from "../../store/opening.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print } from "../output.ts";
import { ProgressBar } from "../progress-bar.ts";

interface MigrateFlags extends AppFlags {
  readonly dryRun?: boolean;
}

export function migrateCommand(): Command {
  return appCommand("migrate", "create or upgrade the store's schema")
    .option("--dry-run", "change nothing, print what would be run")
    .action(async (flags: MigrateFlags) => {
      const dryRun = flags.dryRun === true;
      const run = async (app: Escapement): Promise<readonly PendingMigration[]> => {
        const pending = await app.migrate({ dryRun: true });
        if (dryRun) return pending;
        // A namespace that is not there yet is made without a migration.
        if (pending.length === 0) return app.migrate();
        const what = `applying ${pending.length === 1 ? "1 migration" : `${pending.length} migrations`}`;
        return new ProgressBar(flags.json !== true).during(what, () => app.migrate());
      };
      const migrations = await withApp(flags, dryRun ? "ask" : "make", run, { migrate: false });
      print(flags.json, { dryRun, migrations }, () => {
        if (migrations.length === 0) return ["the schema is up to date"];
        if (!dryRun) return migrations.map(({ name }) => `applied ${name}`);
        return migrations.flatMap(({ name, sql }) => [`-- ${name}`, ...sql.split("\n")]);
      });
    });
}
