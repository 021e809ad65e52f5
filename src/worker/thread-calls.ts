import type { HandlerJobs } from "../enqueue.ts";
import { type CallAnswer, revive, type ThreadNews } from "./threads.ts";

type Verb = Extract<ThreadNews, { kind: "call" }>["verb"];

/** What a handler in a thread enqueues and asks: the main thread does it, which has the store. */
export class ThreadCalls {
  readonly #tell: (news: ThreadNews) => void;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  #calls = 0;

  constructor(tell: (news: ThreadNews) => void) {
    this.#tell = tell;
  }

  readonly jobs = {
    enqueue: (job: unknown, ...rest: unknown[]) => this.#call("enqueue", [nameOf(job), ...rest]),
    enqueueMany: (first: unknown, ...rest: unknown[]) =>
      this.#call(
        "enqueueMany",
        isList(first) ? [[...first].map(named), ...rest] : [nameOf(first), ...rest.map(listed)],
      ),
    get: (job: unknown) => this.#call("get", [job]),
  } as HandlerJobs;

  answer(call: number, answer: CallAnswer): void {
    const waiting = this.#waiting.get(call);
    this.#waiting.delete(call);
    if ("error" in answer) waiting?.reject(revive(answer.error, false));
    else waiting?.resolve(answer.value);
  }

  #call(verb: Verb, values: readonly unknown[]): Promise<unknown> {
    this.#calls += 1;
    const call = this.#calls;
    return new Promise((resolve, reject) => {
      // First what can fail: a value that cannot cross to another thread is refused here.
      this.#tell({ kind: "call", call, verb, values });
      this.#waiting.set(call, { resolve, reject });
    });
  }
}

function isList(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

function listed(value: unknown): unknown {
  return isList(value) ? [...value] : value;
}

/** A definition has functions, which cannot cross; the main thread knows it by its name. */
function nameOf(job: unknown): unknown {
  return typeof job === "object" && job !== null && "name" in job ? job.name : job;
}

function named(item: unknown): unknown {
  return typeof item === "object" && item !== null && "job" in item
    ? { ...item, job: nameOf(item.job) }
    : item;
}
