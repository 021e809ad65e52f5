import type { Message } from "../../../src/message/message.ts";
import type { PublishResult, TransportContext, TransportFactory } from "../../../src/message/transport.ts";
import type { Chance } from "../../../src/testing/chance.ts";
import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import { BatchingTransport, turnBatching } from "../../../src/transports/batching.ts";
import type { Arrival, RelayHistory } from "./relay-history.ts";
import type { RelayWitness } from "./relay-witness.ts";
import { never, type SimulatedProcess } from "./simulated-process.ts";
import type { Weather } from "./weather.ts";

export interface BrokerParts {
  readonly process: SimulatedProcess;
  readonly world: VirtualClock;
  readonly chance: Chance;
  readonly weather: Weather;
  readonly history: RelayHistory;
  readonly witness: RelayWitness;
}

/** The body of a message that no broker will ever take. */
export const unacceptable = '"unacceptable"';

/** The way from one process to the broker: a batch may be refused, lost on either way, late, or the death of its sender. */
export function simulatedTransport(parts: BrokerParts): TransportFactory & { isCut: boolean } {
  const { process, world, chance, weather, history, witness } = parts;
  const factory = {
    kind: "simulated",
    address: "",
    isCut: false,
    open: async ({ clock }: TransportContext) =>
      new BatchingTransport({ publish, close: async () => {} }, clock, turnBatching),
  };
  return factory;

  async function publish(
    messages: readonly Message[],
    { timeoutMs }: { readonly timeoutMs: number },
  ): Promise<PublishResult[]> {
    if (!process.alive) return never();
    const plan = weather.call(chance, true);
    history.tell(
      process.name,
      `publishes ${messages.map(({ dedupeId, headers }) => `${headers["escapement-id"]}#${headers["escapement-token"]}${dedupeId.slice(-2)}`).join(" ")}`,
    );
    if (plan.fault === "crash-before") {
      process.crash("before a publish");
      return never();
    }
    return new Promise((resolve) => {
      const answer = (results: PublishResult[], inMs: number): void => {
        world.after(inMs, () => process.deliver("io", () => resolve(results)));
      };
      // What was not sent in time is not sent any more.
      if (plan.thereMs >= timeoutMs)
        return answer(
          messages.map(() => refusal("not sent in time")),
          timeoutMs,
        );
      world.after(plan.thereMs, () => {
        // A process that is gone has nothing left to send; what the system had stopped is sent when it is woken, or not at all.
        if (!process.alive) return;
        if (process.paused || factory.isCut || plan.fault === "refuse") {
          history.fault(process.name, "refused publish");
          return answer(
            messages.map(() => refusal("not reached")),
            Math.min(plan.backMs, timeoutMs - plan.thereMs),
          );
        }
        // A connection that breaks in the middle of a batch leaves its second half behind.
        const most = plan.fault === "part" ? Math.floor(messages.length / 2) : messages.length;
        const results = messages.map((message, index) =>
          index < most ? take(message) : refusal("not sent"),
        );
        if (plan.fault === "part") history.fault(process.name, "part of a batch");
        if (plan.fault === "crash-between") return process.crash("after the broker had taken a batch");
        const isLate = plan.thereMs + plan.backMs >= timeoutMs;
        if (plan.fault === "lose" || isLate) {
          history.fault(process.name, "lost acknowledgement");
          return answer(
            messages.map(() => ambiguous),
            timeoutMs - plan.thereMs,
          );
        }
        answer(results, plan.backMs);
        if (plan.fault === "crash-after")
          world.after(plan.backMs, () => process.clock.defer(() => process.crash("after a publish")));
      });
    });
  }

  function take(message: Message): PublishResult {
    const isPermanent = message.body === unacceptable;
    const isAccepted = !isPermanent && (weather.quiet || !chance.happens(0.05));
    const arrival: Arrival = {
      id: decodeURIComponent(message.headers["escapement-id"] ?? ""),
      token: Number(message.headers["escapement-token"]),
      redrives: Number(message.headers["escapement-redrives"]),
      body: message.body,
      process: process.name,
      at: history.now,
      on: history.storeNow,
      isAccepted,
    };
    history.tell(
      "broker",
      `${isAccepted ? "takes" : "refuses"} ${arrival.id}#${arrival.token} of ${process.name}`,
    );
    witness.arrived(arrival);
    if (isAccepted) return { kind: "acknowledged" };
    return { kind: "refused", error: new Error("the broker says no"), permanent: isPermanent };
  }
}

const ambiguous: PublishResult = { kind: "ambiguous", error: new Error("no answer in time") };

function refusal(message: string): PublishResult {
  return { kind: "refused", error: new Error(message), permanent: false };
}
