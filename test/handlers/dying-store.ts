import type { StoreContext } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore as openSqlite } from "../../src/stores/sqlite/index.ts";

/** A store whose thread ends soon after it was opened there. */
export function openStore(options: unknown, context: StoreContext): Promise<Store> {
  setTimeout(() => process.exit(1), 500);
  return openSqlite(options, context);
}
