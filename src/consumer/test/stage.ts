import { join } from "node:path";
import { scratchFolder } from "../../../test/scratch.ts";
import { createInbox, type Inbox } from "../../inbox/inbox.ts";
import { silentLogger } from "../../log.ts";
import type { Message } from "../../message/message.ts";
import { acknowledged, refused } from "../../message/publish-result.ts";
import type { Route, Transport } from "../../message/transport.ts";
import { sqliteInbox } from "../../stores/sqlite/index.ts";
import { type ConsumeOptions, consume, type DeadMessage } from "../index.ts";
import { MemorySource } from "./memory-source.ts";

export function newInbox(options: { readonly lease?: number } = {}): { inbox: Inbox; path: string } {
  const path = join(scratchFolder("consumer"), "inbox.db");
  return { path, inbox: createInbox({ store: sqliteInbox({ path, durability: "normal" }), ...options }) };
}

/** A place for dead messages that keeps what it is given while it is up. */
export function newGraveyard(): {
  readonly route: Route;
  readonly published: Message[];
  readonly refusals: number;
  isUp: boolean;
} {
  const graveyard = { published: [] as Message[], refusals: 0, isUp: true };
  const publish: Transport["publish"] = async (messages) => {
    if (!graveyard.isUp) {
      graveyard.refusals += 1;
      return messages.map(() => refused("down"));
    }
    graveyard.published.push(...messages);
    return messages.map(() => acknowledged);
  };
  const open = async (): Promise<Transport> => ({ publish, close: async () => {} });
  const transport = { kind: "memory", address: "", open };
  return Object.assign(graveyard, {
    route: { destination: "graveyard", dispatchTimeoutMs: 1_000, transport },
  });
}

export interface Stage extends AsyncDisposable {
  readonly source: MemorySource;
  readonly dead: DeadMessage[];
  readonly consumer: ReturnType<typeof consume>;
  readonly path: string;
  readonly inbox: Inbox;
}

export async function stage(
  options: Pick<ConsumeOptions, "jobs"> & Partial<ConsumeOptions>,
  prepare: (source: MemorySource) => void = () => {},
): Promise<Stage> {
  const source = new MemorySource();
  prepare(source);
  const dead: DeadMessage[] = [];
  const { inbox, path } = newInbox();
  const onDead =
    options.deadLetter === undefined ? { onDead: (one: DeadMessage) => void dead.push(one) } : {};
  const consumer = consume({ from: source, inbox, log: silentLogger, ...onDead, ...options });
  await consumer.start();
  const dispose = async (): Promise<void> => {
    await consumer.stop();
    await inbox.close();
  };
  return { source, dead, consumer, path, inbox, [Symbol.asyncDispose]: dispose };
}
