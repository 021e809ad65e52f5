import type { Clock } from "../clock.ts";
import type { Settings } from "../settings.ts";
import type { Store } from "../store.ts";
import { storeFromUrl } from "../stores/open.ts";

/** Opens the store that the settings name, and brings its schema up to date unless they say otherwise. */
export async function openStore(
  { store: source, namespace, migrate, log }: Settings,
  clock: Clock,
): Promise<Store> {
  const factory = typeof source === "string" ? await storeFromUrl(source) : source;
  const store = await factory.open({ namespace, clock, log });
  try {
    if (migrate) await store.migrate();
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}
