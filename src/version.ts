import { createRequire } from "node:module";

/** The version of this library; package.json stands one folder above, both in the sources and in the built package. */
export const version: string = createRequire(import.meta.url)("../package.json").version;
