/**
 * What a handle knows about the claims it sent. A claim that took nothing is remembered only here; one that was sent and not answered
 * is doubtful: a copy of it may still be in flight, and the next claim must leave a trace on the server before that copy arrives.
 */
export class Sequences {
  readonly #answered = new Map<string, number>();
  readonly #doubtful = new Map<string, number>();

  /** Sends a claim with what its script must know of earlier ones. */
  async send<T>(
    claimer: string,
    sequence: number,
    call: (known: { readonly answered: number; readonly doubtful: boolean }) => Promise<T>,
  ): Promise<T> {
    const answered = this.#answered.get(claimer) ?? -1;
    const doubtful = this.#doubtful.get(claimer) === sequence;
    this.#doubtful.set(claimer, sequence);
    const answer = await call({ answered, doubtful });
    this.#answered.set(claimer, Math.max(answered, sequence));
    this.#doubtful.delete(claimer);
    return answer;
  }
}
