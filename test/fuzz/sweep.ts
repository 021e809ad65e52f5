import { isFull } from "../full.ts";

/**
 * Whether every column and every kind of key of a server is tried. `ESCAPEMENT_FUZZ=all npm test -- test/fuzz` does; it takes some ten
 * minutes, and is not green on Postgres and MySQL yet, so CI tries a sample by the seed there and everything on SQLite.
 */
export const sweepsServers = process.env["ESCAPEMENT_FUZZ"] === "all";

/** The same for a SQLite file, where a case takes a tenth of a second. */
export const sweepsFiles = sweepsServers || isFull;
