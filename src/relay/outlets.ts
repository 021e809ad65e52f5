import type { AnyDefinition } from "../definition.ts";
import type { Transport, TransportContext, TransportFactory } from "../transport.ts";
import { Gate } from "./gate.ts";
import { GatheredTransport } from "./gathered.ts";

/** An open transport, shared by all routes that lead to it. */
export interface Outlet {
  readonly kind: string;
  readonly transport: Transport;
  readonly gate: Gate;
}

/** Opens each transport once, and finds the one that a job goes through. */
export class Outlets {
  readonly #byAddress = new Map<string, Outlet>();
  readonly #byName = new Map<string, Outlet>();

  static async open(definitions: Iterable<AnyDefinition>, context: TransportContext): Promise<Outlets> {
    const outlets = new Outlets();
    try {
      for (const { name, route } of definitions) {
        if (route === null) continue;
        const { kind, address } = route.transport;
        const key = `${kind}\n${address}`;
        const known = outlets.#byAddress.get(key);
        const outlet = known ?? {
          kind,
          transport: await openTransport(route.transport, context),
          gate: new Gate(),
        };
        outlets.#byAddress.set(key, outlet);
        outlets.#byName.set(name, outlet);
      }
    } catch (error) {
      await outlets.close();
      throw error;
    }
    return outlets;
  }

  get count(): number {
    return this.#byAddress.size;
  }

  of(name: string): Outlet | undefined {
    return this.#byName.get(name);
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#byAddress.values()].map(({ transport }) => transport.close()));
  }
}

async function openTransport(factory: TransportFactory, context: TransportContext): Promise<Transport> {
  const transport = await factory.open(context);
  return factory.gathers ? new GatheredTransport(transport, context.clock) : transport;
}
