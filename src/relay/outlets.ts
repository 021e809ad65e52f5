import type { AnyDefinition } from "../definition.ts";
import type { Transport, TransportContext, TransportFactory } from "../transport.ts";
import { GatheredTransport } from "./gathered.ts";
import { Outlet } from "./outlet.ts";

/** Opens each transport once, and finds the outlet that a job goes through. */
export class Outlets {
  readonly #transports = new Map<string, Transport>();
  readonly #byPlace = new Map<string, Outlet>();
  readonly #byName = new Map<string, Outlet>();

  static async open(definitions: Iterable<AnyDefinition>, context: TransportContext): Promise<Outlets> {
    const outlets = new Outlets();
    try {
      for (const { name, route } of definitions) {
        if (route === null) continue;
        const { kind, address } = route.transport;
        const key = `${kind}\n${address}`;
        const transport = outlets.#transports.get(key) ?? (await openTransport(route.transport, context));
        outlets.#transports.set(key, transport);
        const place = `${key}\n${route.destination}`;
        const { destination } = route;
        const outlet =
          outlets.#byPlace.get(place) ?? new Outlet({ kind, destination, transport, log: context.log });
        outlets.#byPlace.set(place, outlet);
        outlets.#byName.set(name, outlet);
      }
    } catch (error) {
      await outlets.close();
      throw error;
    }
    return outlets;
  }

  get count(): number {
    return this.#byPlace.size;
  }

  of(name: string): Outlet | undefined {
    return this.#byName.get(name);
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#transports.values()].map((transport) => transport.close()));
  }
}

async function openTransport(factory: TransportFactory, context: TransportContext): Promise<Transport> {
  const transport = await factory.open(context);
  return factory.gathers ? new GatheredTransport(transport, context.clock) : transport;
}
