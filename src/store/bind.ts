import type { Store } from "./store.ts";

/** What belongs to an open handle, and the one verb whose type has its own parameter. */
type Handle =
  | "capabilities"
  | "address"
  | "migrate"
  | "pendingMigrations"
  | "health"
  | "close"
  | "subscribe"
  | "transact";

type VerbName = Exclude<keyof Store, Handle>;

/** A verb as the file of a store writes it: its first argument is the session, the others are the verb's own. */
type Verb<Session, Name extends VerbName> = (
  session: Session,
  ...asked: Parameters<Store[Name]>
) => Awaited<ReturnType<Store[Name]>> | ReturnType<Store[Name]>;

/** Turns functions of a session into verbs of a store; `run` gives each of them its session. */
export function bind<Session, Name extends VerbName>(
  functions: { readonly [N in Name]: Verb<Session, N> },
  run: (work: (session: Session) => unknown) => Promise<unknown>,
): Pick<Store, Name> {
  const bound = (Object.keys(functions) as Name[]).map((name) => {
    const verb = functions[name] as (session: Session, ...asked: readonly unknown[]) => unknown;
    return [name, async (...asked: readonly unknown[]) => run((session) => verb(session, ...asked))];
  });
  // Each verb returns what its function returns, which the types of Object.fromEntries cannot say.
  return Object.fromEntries(bound) as Pick<Store, Name>;
}
