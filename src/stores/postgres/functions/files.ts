import { readTextFiles } from "../../text-files.ts";

/** The files of `functions/`, by name. The build puts their texts here. */
export const functionFiles = readTextFiles(new URL("./", import.meta.url), ".sql");
