import { createRequire } from "node:module";

/** The version of this library. The build puts the text here: in a bundle there is no package.json to read. */
export const version: string = createRequire(import.meta.url)("../../package.json").version;
