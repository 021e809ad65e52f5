import { readTextFiles } from "../../text-files.ts";

/** The files of `lua/`, by name. The build inlines their contents here. */
export const luaFiles = readTextFiles(new URL("./", import.meta.url), ".lua");
