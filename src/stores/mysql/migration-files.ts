import { readTextFiles } from "../../text-files.ts";

/** The files of `migrations/`, by name. The build puts their texts here. */
export const migrationFiles = readTextFiles(new URL("./migrations/", import.meta.url), ".sql");
