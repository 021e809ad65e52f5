import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Me } from "./api/answers.ts";

export const Identity = createContext<Me>({
  actor: "",
  role: "read",
  namespace: "",
  version: "",
  notice: null,
});

const order: readonly Me["role"][] = ["read", "operate", "admin"];

/** Whether the role of the viewer is enough. */
export function useRole(): (needed: Me["role"]) => boolean {
  const { role } = useContext(Identity);
  return (needed) => order.indexOf(role) >= order.indexOf(needed);
}

/** Whether to show an action. The server decides again when it is called. */
export function useMay(needed: Me["role"]): boolean {
  return useRole()(needed);
}
