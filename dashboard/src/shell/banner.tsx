import type { VNode } from "preact";
import { useContext } from "preact/hooks";
import { Identity } from "../identity.ts";
import { Text } from "../parts/text.tsx";

/** The server's notice, on every screen. */
export function Banner(): VNode | null {
  const { notice } = useContext(Identity);
  if (notice === null) return null;
  return (
    <aside class="banner small" aria-label="About this installation">
      <Text value={notice} />
    </aside>
  );
}
