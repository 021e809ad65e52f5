/** `npm run schemas`: writes the schema of each SQL store, as a real database has it after the migrations, into `src/stores/<store>/schema.sql`. */
import { writeFileSync } from "node:fs";
import { schemaDumps } from "./dump.ts";

const root = new URL("../../", import.meta.url);

for (const { path, skip, make } of await schemaDumps()) {
  if (skip === false) writeFileSync(new URL(path, root), await make());
  console.log(skip === false ? `wrote ${path}` : `left ${path} as it is: ${skip}`);
  if (skip !== false) process.exitCode = 1;
}
