import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { editions, editionsVariable } from "../../testbed/editions/index.ts";
import { npmPackages } from "../../testbed/npm.ts";
import { kinds } from "../../testbed/servers/index.ts";
import { provideEdition } from "../../testbed/software.ts";
import { compile } from "./compile.ts";
import { clientsLine, clientsVariable } from "./use-clients.ts";

/** One version of something that the library stands on, and the tests that are run on it. */
export interface Row {
  readonly name: string;
  readonly group: "node" | "clients" | "servers";
  /** The oldest of its kind, or the newest of its product: CI runs these. */
  readonly isEnd: boolean;
  /** The store contract and the random comparison, or the transport's. */
  readonly contract: readonly string[];
  /** Variants of the contract that have little to do with versions; `--short` leaves them out. */
  readonly variants?: RegExp;
  /** Real processes that are killed, and real servers that are. */
  readonly processes: readonly string[];
  /** Fetches what is needed; throws when it cannot be had. */
  prepare(): Promise<Preparation>;
}

export interface Preparation {
  readonly env: Readonly<Record<string, string>>;
  /** What the tests print when they really ran on it. */
  readonly proof: string;
  /** The Node that runs the tests, from compiled sources. @default the one that runs everything else */
  readonly node?: string;
}

const oldestNode = "22.18.0";
const newestNode = "26.10.0";
const nodeVersions = [oldestNode, "24.0.0", newestNode];

const ofStore = (store: string): Pick<Row, "contract" | "processes"> => ({
  contract: [`src/stores/${store}/${store}.test.ts`, `src/stores/${store}/random.test.ts`],
  processes: [`src/stores/${store}/processes.test.ts`, `src/stores/${store}/connection.test.ts`],
});

const variants = /behind a pooler|takes one statement at a time|cluster, one slot/;

const sqlite: Pick<Row, "contract" | "processes"> = {
  contract: [
    "test/matrix/quickstart.test.ts",
    "src/stores/memory/memory.test.ts",
    "src/stores/sqlite/sqlite.test.ts",
  ],
  processes: ["src/stores/sqlite/processes.test.ts", "src/stores/sqlite/faults.test.ts"],
};

const nodeRows = nodeVersions.map((version): Row => {
  return {
    name: `Node ${version}`,
    group: "node",
    isEnd: version === oldestNode || version === newestNode,
    ...sqlite,
    async prepare() {
      const platform = `node-${process.platform}-${process.arch}`;
      const folder = await npmPackages([`${platform}@${version}`]);
      await compile();
      return { env: {}, proof: "", node: join(folder, "node_modules", platform, "bin/node") };
    },
  };
});

/** The clients, by the peer dependencies that are raised together, and what each is for. */
const clients: readonly { readonly packages: readonly string[]; readonly tests: readonly string[] }[] = [
  { packages: ["pg"], tests: ["src/stores/postgres/postgres.test.ts"] },
  { packages: ["mysql2"], tests: ["src/stores/mysql/mysql.test.ts"] },
  {
    packages: ["ioredis"],
    tests: ["src/stores/redis/redis.test.ts", "src/transports/redis-streams/redis-streams.test.ts"],
  },
  { packages: ["@platformatic/kafka"], tests: ["src/transports/kafka/kafka.test.ts"] },
  {
    packages: ["@nats-io/transport-node", "@nats-io/jetstream"],
    tests: ["src/transports/nats/nats.test.ts"],
  },
  { packages: ["undici"], tests: ["src/transports/http/http.test.ts"] },
  { packages: ["prom-client"], tests: ["test/behaviour/metrics.test.ts"] },
];

/** The lowest version of each major that package.json allows: `^5.4.0 || ^6.0.0` gives two rows. */
const clientRows = clients.flatMap(({ packages, tests }): Row[] => {
  const ranges = packages.map((name) => lowestVersions(peerDependencies()[name] ?? ""));
  return (ranges[0] ?? []).map((_, major) => {
    const wanted = packages.map((name, index) => `${name}@${ranges[index]?.[major]}`);
    return {
      name: wanted.join(" "),
      group: "clients",
      isEnd: major === 0,
      contract: tests,
      variants,
      processes: [],
      async prepare() {
        const folder = await npmPackages(wanted);
        const hook = pathToFileURL(join(import.meta.dirname, "use-clients.ts")).href;
        return {
          proof: clientsLine(folder),
          env: {
            [clientsVariable]: JSON.stringify({ packages, folder }),
            NODE_OPTIONS: `--import=${hook}`,
          },
        };
      },
    };
  });
});

function peerDependencies(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8")).peerDependencies;
}

function lowestVersions(range: string): string[] {
  return range.split(" || ").map((part) => part.replace("^", ""));
}

const stores = { postgres: "postgres", mariadbd: "mysql", mysqld: "mysql", "redis-server": "redis" } as const;

const serverRows = editions.map((edition): Row => {
  const { name, program } = edition;
  const newest = editions.findLast((other) => productOf(other.name) === productOf(name));
  const oldest = editions.find((other) => stores[other.program] === stores[program]);
  return {
    name,
    group: "servers",
    isEnd: edition === newest || edition === oldest,
    ...ofStore(stores[program]),
    variants,
    async prepare() {
      const kind = kinds[stores[program]];
      const tools = await provideEdition(edition, kind.software);
      if (typeof tools === "string") throw new Error(tools);
      return { env: { [editionsVariable]: name }, proof: `(edition: ${name})` };
    },
  };
});

function productOf(edition: string): string {
  return edition.replace(/-[\d.]+$/, "");
}

/** Everything that `npm run matrix` can run. */
export const rows: readonly Row[] = [...nodeRows, ...clientRows, ...serverRows];
