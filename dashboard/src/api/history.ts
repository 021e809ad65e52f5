import type { History } from "./answers.ts";
import { useQuery } from "./use-query.ts";

interface Asked {
  readonly step: "minute" | "hour";
  /** How long ago: `1h`. */
  readonly since: string;
  readonly by?: "queue" | "name";
}

/** The kept figures; null while they are on their way, or where there are none. */
export function useHistory({ step, since, by }: Asked, everyMs = 10_000): History | null {
  return useQuery<History>("history", { step, since, by }, { everyMs }).data;
}
