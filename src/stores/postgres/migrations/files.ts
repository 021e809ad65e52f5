import { readTextFiles } from "../../text-files.ts";

/** The files of `migrations/`, by name. The build inlines their contents here. */
export const migrationFiles = readTextFiles(new URL("./", import.meta.url), ".sql");
