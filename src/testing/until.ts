import assert from "node:assert/strict";
import { isTransient } from "../errors.ts";

/** How long a test waits for what must happen: far beyond what the slowest machine needs. */
const patienceMs = 60_000;

/** Asks again until it is so; a deadline, not a sleep. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await condition())) {
    assert(performance.now() < deadline, `waited ${patienceMs / 1_000} s until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The first answer that is not a transient failure. For calls whose own timeout is short because the test makes others run into it. */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  let answer: { readonly value: T } | undefined;
  await until("the call is answered", async () => {
    try {
      answer = { value: await call() };
      return true;
    } catch (error) {
      if (!isTransient(error)) throw error;
      return false;
    }
  });
  assert(answer !== undefined);
  return answer.value;
}
