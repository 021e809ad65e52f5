import type { Clock } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import type { ConfigFile } from "../runtime/config-file.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { opened, withRetries } from "../runtime/transient.ts";
import type { Settings } from "../settings.ts";
import type { Store } from "../store/store.ts";
import { storeFromUrl } from "../stores/open.ts";

/** What a program may have found out before it makes an app. */
export interface Surroundings {
  /** The config file, loaded already; null: there is none. @default the one in the working directory */
  readonly config?: ConfigFile | null;
  /** Creates nothing: no file, no schema, no namespace. For callers that only read. @default false */
  readonly mustExist?: boolean;
  /** Shows listeners the inputs of jobs. @default false */
  readonly withInputs?: boolean;
}

/** Opens the store that the settings name, and brings its schema up to date unless they say otherwise. */
export async function openStore(settings: Settings, runtime: Runtime, mustExist: boolean): Promise<Store> {
  const open = (): Promise<Store> => openOnce(settings, runtime.clock, mustExist);
  // A migration may take longer than anybody waits for an answer.
  return mustExist
    ? await opened(runtime, open, (store) => store.close())
    : await withRetries(runtime, open, 1);
}

async function openOnce(
  { store: source, namespace, migrate, log }: Settings,
  clock: Clock,
  mustExist: boolean,
): Promise<Store> {
  const factory = typeof source === "string" ? await storeFromUrl(source) : source;
  const store = await factory.open({ namespace, clock, log, mustExist });
  try {
    if (migrate) await (mustExist ? refuseOutdated(store) : store.migrate());
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

/** A schema of a different version from this library's may answer wrongly; one that is not there says so itself, and where it was looked for. */
async function refuseOutdated(store: Store): Promise<void> {
  const [first, ...others] = await store.pendingMigrations();
  if (first === undefined) return;
  await store.queues();
  throw new EscapementError(
    "store-unmigrated",
    `the schema does not match this library's version: ${first.name}${others.length === 0 ? " is" : ` and ${others.length} more are`} missing; run "escapement migrate"`,
  );
}
