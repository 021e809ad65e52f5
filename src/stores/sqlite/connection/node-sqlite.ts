import type * as NodeSqlite from "node:sqlite";
import { checkNode } from "../../../runtime/node-version.ts";

// A static import would fail before anything could say which Node version is needed.
checkNode();

export const { DatabaseSync }: typeof NodeSqlite = process.getBuiltinModule("node:sqlite");
export type DatabaseSync = NodeSqlite.DatabaseSync;
