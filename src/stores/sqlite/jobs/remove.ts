import { endedStates, isTerminal } from "../../../state.ts";
import type { RemoveOutcome, SelectParams, SelectResult } from "../../../store/jobs.ts";
import { forget } from "../prune.ts";
import type { Session } from "../session.ts";
import { forEachSelected } from "./select.ts";

const holding = "select 1 from escapement_unique_keys where job = ? and until > ?";

export function remove(session: Session, params: SelectParams): SelectResult<RemoveOutcome> {
  const { connection, now } = session;
  return forEachSelected(session, params, endedStates, ({ seq, state }) => {
    if (!isTerminal(state)) return "refused";
    if (connection.get(holding, seq, now) !== undefined) return "held";
    forget(session, [seq]);
    return "deleted";
  });
}
