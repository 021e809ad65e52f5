import type { z } from "@hono/zod-openapi";
import type { Escapement } from "../app/escapement.ts";
import type { Jsonified } from "../json.ts";
import type { Act } from "../operations/act.ts";
import type { Operations } from "../operations/operations.ts";
import type { Role, RouteName } from "./roles.ts";
import type { StreamEvent, Streams } from "./streams.ts";
import type { Tasks } from "./tasks.ts";

/** What the routes work with. */
export interface Services {
  readonly app: Escapement;
  readonly operations: Operations;
  readonly tasks: Tasks;
  readonly streams: Streams;
  /** Where the last report of `escapement verify` is. */
  readonly verifyReport: string;
  /** The notice that the page shows to everyone. */
  readonly notice: string | null;
  /** Whether answers are masked. */
  readonly isRedacted: boolean;
}

/** A request that was let in and read. */
export interface Call<Params, Query, Body> extends Services {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly actor: string;
  readonly role: Role;
  readonly header: (name: string) => string | null;
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
}

type Unread = Readonly<Record<never, never>>;
type Read<S> = S extends z.ZodType ? z.output<S> : Unread;
type DeepReadonly<T> = T extends readonly (infer I)[]
  ? readonly DeepReadonly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** One route: what it takes, what it answers, and how. The table of roles says who may call it. */
export interface Endpoint<Params, Query, Body, Answer extends z.ZodType> {
  readonly route: RouteName;
  readonly summary: string;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly answer: Answer;
  /** @default 200 */
  readonly status?: number;
  /** Headers that it reads, for the description. */
  readonly headers?: z.ZodObject;
  /** Whether it answers with events (server-sent), each of them the answer. */
  readonly isStream?: boolean;
  run(
    call: Call<Read<Params>, Read<Query>, Read<Body>>,
  ): Promise<
    | DeepReadonly<z.input<Answer>>
    | Answered<DeepReadonly<z.input<Answer>>>
    | AsyncGenerator<StreamEvent, void>
    | Response
  >;
}

/** An answer with its own status. */
export class Answered<T> {
  readonly value: T;
  readonly status: number;

  constructor(value: T, status: number) {
    this.value = value;
    this.status = status;
  }
}

/** An endpoint of whatever kind, as it is registered. */
export interface AnyEndpoint extends Omit<Endpoint<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType>, "run"> {
  run(call: Call<unknown, unknown, unknown>): Promise<unknown>;
}

export function endpoint<
  Answer extends z.ZodType,
  Params extends z.ZodObject | undefined = undefined,
  Query extends z.ZodObject | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(given: Endpoint<Params, Query, Body, Answer>): AnyEndpoint {
  return given as unknown as AnyEndpoint;
}

/** A value as JSON will carry it: only its type changes here. */
export function asJson<T>(value: T): Jsonified<T> {
  return value as unknown as Jsonified<T>;
}

export function actOf(
  call: Pick<Call<unknown, unknown, unknown>, "actor">,
  { reason }: { readonly reason?: string | undefined },
): Act {
  return { actor: call.actor, reason: reason ?? null };
}

/** Without the keys that were not given: options refuse what is undefined. */
export function given<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
