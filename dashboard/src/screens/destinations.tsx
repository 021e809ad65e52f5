import type { VNode } from "preact";
import type { Definitions, History, HistoryPoint, Node } from "../api/answers.ts";
import { count } from "../format.ts";
import { Badge } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { pathTo } from "../router.ts";

interface DestinationsProps {
  readonly known: Definitions;
  readonly nodes: readonly Node[];
  /** By name; null while it is on its way. */
  readonly history: History | null;
}

/** A place that jobs are published to, by what its relays and the kept figures say of it. */
interface Place {
  readonly transport: string;
  readonly destination: string;
  readonly names: readonly string[];
  /** Relays to which nothing gets through there. */
  readonly failing: readonly { readonly node: string; readonly error: string | null }[];
  /** Relays that publish there. */
  readonly relays: number;
  readonly publishRetries: number;
  readonly rollbackRetries: number;
  readonly namingRetries: number;
}

/** Where jobs are published, whether they get through, and how often a dispatch was rolled back, by the phase that failed. */
export function Destinations(props: DestinationsProps): VNode | null {
  const places = placesOf(props);
  if (places.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="destinations">
      <div>
        <h2 id="destinations">Destinations</h2>
        <p class="soft small">
          Dispatches that failed and are retried, by phase: of the last 24 hours and of every process.
        </p>
      </div>
      <div class="table-wrap">
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">Destination</th>
              <th scope="col">State</th>
              <th scope="col">Jobs</th>
              <th
                scope="col"
                class="number"
                title="The broker refused the message, or did not answer: rolled back"
              >
                Publishes refused
              </th>
              <th scope="col" class="number" title="What the refusal means could not be written at once">
                Rollbacks unwritten
              </th>
              <th
                scope="col"
                class="number"
                title="The batch could not be named in the store: nothing was sent"
              >
                Batches unnamed
              </th>
            </tr>
          </thead>
          <tbody>
            {places.map((place) => (
              <Row key={`${place.transport} ${place.destination}`} place={place} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ place }: { readonly place: Place }): VNode {
  return (
    <tr data-row>
      <td class="head">
        <Text value={place.destination} most={80} />
        <br />
        <span class="soft small">{place.transport}</span>
      </td>
      <td class="wide">
        <State place={place} />
      </td>
      <td class="wide" data-label="Jobs">
        {place.names.map((name, index) => (
          <span key={name}>
            {index > 0 && ", "}
            <a href={pathTo("jobs", { name })}>
              <Text value={name} most={60} />
            </a>
          </span>
        ))}
      </td>
      <Figure label="Publishes refused" value={place.publishRetries} />
      <Figure label="Rollbacks unwritten" value={place.rollbackRetries} />
      <Figure label="Batches unnamed" value={place.namingRetries} />
    </tr>
  );
}

function State({ place: { failing, relays } }: { readonly place: Place }): VNode {
  const [first] = failing;
  if (first !== undefined)
    return (
      <>
        <Badge tone="bad">✕ nothing gets through</Badge>
        <div class="small">
          {failing.length < relays && `For ${count(failing.length)} of ${count(relays)} relays. `}
          <Text value={first.error ?? "no error was given"} most={300} />
        </div>
      </>
    );
  return relays === 0 ? <Badge tone="warn">no relay</Badge> : <Badge tone="good">✓ open</Badge>;
}

function Figure({ label, value }: { readonly label: string; readonly value: number }): VNode {
  return (
    <td class={`number ${value === 0 ? "soft" : ""}`} data-label={label}>
      {count(value)}
    </td>
  );
}

function placesOf({ known, nodes, history }: DestinationsProps): Place[] {
  const told = nodes
    .filter(({ alive }) => alive)
    .flatMap((node) => (node.destinations ?? []).map((one) => ({ ...one, node: node.id })));
  const routed = known.definitions.flatMap(({ name, transport, destination }) =>
    transport === null || destination === null ? [] : [{ name, transport, destination }],
  );
  const places = Map.groupBy([...routed, ...told], (one) => `${one.transport} ${one.destination}`);
  return [...places.values()].flatMap((group) => {
    const [one] = group;
    if (one === undefined) return [];
    const { transport, destination } = one;
    const isHere = (other: { transport: string; destination: string }): boolean =>
      other.transport === transport && other.destination === destination;
    const names = routed.filter(isHere).map(({ name }) => name);
    const relays = told.filter(isHere);
    const sum = (of: (point: HistoryPoint) => number): number =>
      (history?.points ?? [])
        .filter((point) => names.includes(point.name ?? ""))
        .reduce((total, point) => total + of(point), 0);
    return {
      ...{ transport, destination, names, relays: relays.length },
      failing: relays.filter(({ failures }) => failures > 0),
      publishRetries: sum((point) => point.publishRetries),
      rollbackRetries: sum((point) => point.rollbackRetries),
      namingRetries: sum((point) => point.namingRetries),
    };
  });
}
