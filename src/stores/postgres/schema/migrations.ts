import { migrationFiles } from "../migrations/files.ts";

export interface Migration {
  readonly version: number;
  readonly name: string;
  /** An older library must not touch the schema after this one: its file has a line `-- breaking`. */
  readonly breaking: boolean;
  readonly sql: string;
}

/** The numbered files, in their order. They hold tables; what the verbs run is in `functions/`. */
export const migrations: readonly Migration[] = Object.entries(migrationFiles).map(([name, sql]) => ({
  version: Number(name.slice(0, 4)),
  name,
  breaking: /^-- breaking$/m.test(sql),
  sql,
}));

export const newestVersion = migrations.at(-1)?.version ?? 0;
