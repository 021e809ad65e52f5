import { isFull } from "../full.ts";

/**
 * Whether every value is tried in every column, and every damage to every kind of key. `ESCAPEMENT_FUZZ=all npm test -- test/fuzz` does, in about
 * an hour. CI tries every column on SQLite, where a case takes a tenth of a second, and a sample by the seed on servers.
 */
export const sweepsAll = process.env["ESCAPEMENT_FUZZ"] === "all";

export const sweepsFiles = sweepsAll || isFull;
