import type { Connection, RowDataPacket } from "mysql2/promise";

/**
 * The connections of this database but the asking one; with `running`, only those whose statement contains it. MySQL cannot list anything
 * while any connection of the server runs a statement with characters beyond three bytes, so it is asked again.
 */
export async function otherConnections(admin: Connection, running = ""): Promise<number[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [rows] = await admin.query<RowDataPacket[]>(
        `select id from information_schema.processlist
         where db = database() and id <> connection_id() and (? = '' or info like ?)`,
        [running, `%${running}%`],
      );
      return rows.map(({ ["id"]: id }) => Number(id));
    } catch (error) {
      const isListing =
        error instanceof Error && "code" in error && error.code === "ER_CANNOT_CONVERT_STRING";
      if (!isListing || attempt >= 1_000) throw error;
    }
  }
}

/** One that ended by itself meanwhile is no failure. */
export async function kill(admin: Connection, id: number): Promise<void> {
  await admin.query(`kill ${id}`).catch(() => {});
}
