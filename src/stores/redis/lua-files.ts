import { readTextFiles } from "../../text-files.ts";

/** The files of `lua/`, by name. The build puts their texts here. */
export const luaFiles = readTextFiles(new URL("./lua/", import.meta.url), ".lua");
