import type { Agent, Dispatcher } from "undici";
import type { Deadline } from "../deadline.ts";

export interface Posting {
  readonly url: URL;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: string;
  /** By when it must be sent, and by when an answer must arrive. */
  readonly sendBy: Deadline;
  readonly deadline: Deadline;
  readonly agent: Pick<Agent, "dispatch">;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The beginning of the body, decoded as UTF-8. */
  readonly text: string;
}

export interface Failure {
  readonly error: Error;
  /** Whether the other side may have received the request. */
  readonly maybeSent: boolean;
}

/** No more than this is read: the status says all that is needed. */
const mostBodyBytes = 64 * 1_024;
const keptTextLength = 300;

/** Sends one request and never rejects. */
export function post({ url, headers, body, sendBy, deadline, agent }: Posting): Promise<Answer | Failure> {
  return new Promise((resolve) => {
    const exchange = new Exchange(sendBy, (outcome) => {
      cancel();
      resolve(outcome);
    });
    const cancel = deadline.whenOver(() => exchange.giveUp(new Error("no answer in time")));
    try {
      const { origin, pathname, search } = url;
      agent.dispatch({ origin, path: pathname + search, method: "POST", headers, body }, exchange);
    } catch (error) {
      exchange.giveUp(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

/** A request and its answer. The first end counts. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #sendBy: Deadline;
  readonly #end: (outcome: Answer | Failure) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #status: number | null = null;
  #headers: Answer["headers"] = {};
  readonly #decoder = new TextDecoder();
  #text = "";
  #bytes = 0;
  #isOver = false;

  constructor(sendBy: Deadline, end: (outcome: Answer | Failure) => void) {
    this.#sendBy = sendBy;
    this.#end = end;
  }

  giveUp(error: Error): void {
    this.#over(error);
    this.#controller?.abort(error);
  }

  /** There is a connection, and nothing has been written to it yet. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#controller === null && this.#sendBy.isOver) this.#over(new Error("not sent in time"));
    // Given up while it waited for a connection; or the client would resend it, which is not its decision.
    if (this.#isOver || this.#controller !== null) controller.abort(new Error("no longer sent"));
    else this.#controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Answer["headers"]): void {
    // The answer is still to come.
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  /** Reads the rest, so the connection can be reused, up to a sensible limit. */
  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    // A character may span two chunks; one whose end is never read is left out.
    if (this.#text.length < keptTextLength) this.#text += this.#decoder.decode(chunk, { stream: true });
    if (this.#bytes > mostBodyBytes) this.giveUp(new Error("the answer is too long"));
  }

  onResponseEnd(): void {
    this.#over(null);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#over(error);
  }

  #over(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // If the status is known, a later failure changes nothing.
    this.#end(
      this.#status === null
        ? { error: error ?? new Error("no answer"), maybeSent: this.#controller !== null }
        : { status: this.#status, headers: this.#headers, text: beginningOf(this.#text) },
    );
  }
}

/** A surrogate pair is kept whole or not at all: half of one is not valid text, and not every store accepts it. */
function beginningOf(text: string): string {
  return text.slice(0, keptTextLength).replace(/[\ud800-\udbff]$/, "");
}
