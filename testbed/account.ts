import { readFileSync } from "node:fs";

/** The user that servers run as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Postgres and PgBouncer refuse to run as root, and nothing else here needs it; undefined when we are not root. */
export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  for (const wanted of ["postgres", "nobody"]) {
    const [, , uid, gid] = users.find(([name]) => name === wanted) ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(
    'expected /etc/passwd to have a user "postgres" or "nobody" to run servers as, and found neither',
  );
}
