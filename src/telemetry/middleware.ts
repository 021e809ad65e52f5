import { describe, EscapementError } from "../errors.ts";
import type { HandlerContext } from "../handler.ts";

/**
 * Runs around every handler of an app or a consumer: for traces, tenancy, error reporting. `next` runs what is inside, the handler at last,
 * and resolves with its result.
 *
 * - What a middleware throws is the job's failure.
 * - What it returns becomes the job's result, or a {@link snooze}; returning nothing leaves what the handler returned or threw as it is, so a
 *   failure that was caught and not thrown again is still a failure.
 * - Returning nothing without having called `next`, and calling it twice, are errors.
 *
 * @example
 * app.use(async ({ job, input }, next) => tenants.run(input.tenant, next));
 */
export type Middleware = (context: HandlerContext<unknown>, next: () => Promise<unknown>) => unknown;

/** Calls a handler with everything that is around it. */
export type Around = (
  context: HandlerContext<never>,
  handler: (context: HandlerContext<never>) => unknown,
) => Promise<unknown>;

/** The first is the outermost. Null if there is none, so callers can skip it. */
export function composeMiddleware(layers: readonly Middleware[]): Around | null {
  if (layers.length === 0) return null;
  return (context, handler) => {
    const enter = async (depth: number): Promise<unknown> => {
      const layer = layers[depth];
      if (layer === undefined) return handler(context);
      return passThrough(layer, context, () => enter(depth + 1));
    };
    return enter(0);
  };
}

/** Settles only once what is inside has: a handler that nothing awaits would outlive its job's slot. */
async function passThrough(
  layer: Middleware,
  context: HandlerContext<never>,
  inner: () => Promise<unknown>,
): Promise<unknown> {
  let running: Promise<unknown> | null = null;
  let misuse: EscapementError | null = null;
  let isOver = false;
  const next = (): Promise<unknown> => {
    if (running === null && !isOver) {
      running = inner();
      // A middleware that ignores it gets it below.
      running.catch(() => {});
      return running;
    }
    misuse ??= misused(layer, context, isOver ? "called next after it had ended" : "called next twice");
    return Promise.reject(misuse);
  };
  const settle = async (): Promise<unknown> => {
    isOver = true;
    await running?.catch(() => {});
    if (misuse !== null) throw misuse;
    return running;
  };
  let value: unknown;
  try {
    value = await layer(context as HandlerContext<unknown>, next);
  } catch (error) {
    await settle().catch(() => {});
    throw error;
  }
  if (running === null && misuse === null && value === undefined)
    throw misused(layer, context, "returned nothing and did not call next");
  if (value === undefined) return settle();
  await settle().catch((error: unknown) => {
    if (error === misuse) throw error;
  });
  return value;
}

function misused({ name }: Middleware, { job }: HandlerContext<never>, what: string): EscapementError {
  const who = name === "" ? "a middleware" : `the middleware ${name}`;
  return new EscapementError(
    "invalid-middleware",
    `${who} ${what}, around job ${JSON.stringify(job.id)}; call next once, or return its own result`,
  );
}

export function checkMiddleware(layers: unknown, option: string): readonly Middleware[] {
  if (Array.isArray(layers) && layers.every((layer) => typeof layer === "function")) return layers;
  const wrong = Array.isArray(layers) ? layers.find((layer) => typeof layer !== "function") : layers;
  throw new EscapementError(
    "invalid-option",
    `expected ${option} to be a list of functions (context, next) => …, got ${describe(wrong)}`,
  );
}
