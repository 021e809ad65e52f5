import type * as NodeSqlite from "node:sqlite";
import { checkNode } from "../../node-version.ts";

// An import of it would fail before anything could say which Node is needed.
checkNode();

export const { DatabaseSync }: typeof NodeSqlite = process.getBuiltinModule("node:sqlite");
export type DatabaseSync = NodeSqlite.DatabaseSync;
