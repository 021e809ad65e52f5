import type { Escapement } from "../app/escapement.ts";
import type { JobFacts } from "../job.ts";

/** Counts an app's running handlers, from its events. */
export class Running {
  readonly #claims = new Set<string>();

  constructor(app: Escapement) {
    const ended = ({ job }: { readonly job: JobFacts }): void => void this.#claims.delete(claimOf(job));
    app.on("started", ({ job }) => void this.#claims.add(claimOf(job)));
    app.on("succeeded", ended).on("failed", ended).on("dead", ended).on("lost", ended).on("crashed", ended);
    app.on("cancelled", ended).on("snoozed", ended).on("stale", ended).on("released", ended);
  }

  get count(): number {
    return this.#claims.size;
  }
}

function claimOf({ id, token }: JobFacts): string {
  return `${token} ${id}`;
}
