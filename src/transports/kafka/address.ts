import { EscapementError } from "../../errors.ts";
import type { TransportFactory } from "../../message/transport.ts";
import { checkHosts, checkKnown, checkLogin, checkOneOf, checkTexts } from "../../options.ts";

const mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const;

export interface KafkaConnectionOptions {
  /**
   * `kafka://user:password@a:9092,b:9092`, `kafka+ssl://…` with TLS, `?mechanism=SCRAM-SHA-512` if it is not PLAIN; or hosts.
   *
   * @default `ESCAPEMENT_KAFKA`
   */
  readonly brokers?: string | readonly string[];
}

/** Where the brokers are and how to log in. */
export interface KafkaAddress {
  /** `host:port` of each. */
  readonly brokers: readonly string[];
  readonly tls: boolean;
  readonly sasl: {
    readonly mechanism: (typeof mechanisms)[number];
    readonly username: string;
    readonly password: string;
  } | null;
}

const form = /^kafka(\+ssl)?:\/\/(?:([^@/]*)@)?([^/?#]+)\/?(?:\?(.*))?$/;

const option = "kafka's brokers";

/** A message never repeats the string, which may hold a password. */
export function parseKafka(given: KafkaConnectionOptions["brokers"]): KafkaAddress {
  const text = given === undefined ? process.env["ESCAPEMENT_KAFKA"] : checkTexts(given, option).join(",");
  if (text === undefined || text === "") {
    throw new EscapementError(
      "invalid-option",
      "kafka does not know where its brokers are; give it brokers, or set ESCAPEMENT_KAFKA",
    );
  }
  const match = form.exec(/^[\w+]+:\/\//.test(text) ? text : `kafka://${text}`);
  const [, secure, login, hosts = "", query] = match ?? [];
  if (match === null) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be kafka://user:password@host:port,… or host:port,…, got another string`,
    );
  }
  return {
    brokers: checkHosts(hosts, 9_092, option),
    tls: secure !== undefined,
    sasl: readLogin(login, query),
  };
}

function readLogin(login: string | undefined, query: string | undefined): KafkaAddress["sasl"] {
  const parameters = Object.fromEntries(new URLSearchParams(query));
  checkKnown(parameters, ["mechanism"], option);
  const mechanism = checkOneOf(
    parameters["mechanism"] ?? "PLAIN",
    mechanisms,
    "the mechanism in kafka's brokers",
  );
  if (login === undefined) return null;
  const [username, password = ""] = checkLogin(login, option);
  if (username !== "") return { mechanism, username, password };
  // Without a user there would be no login, and a given password would be ignored.
  throw new EscapementError(
    "invalid-option",
    `expected the login in ${option} to be user:password, and it has no user`,
  );
}

/** Given values are checked at once; the environment is read when it is needed. */
export function checkBrokers(options: KafkaConnectionOptions): void {
  if (options.brokers !== undefined) parseKafka(options.brokers);
}

/**
 * Whether a route's address leads to the brokers given here: both name one of them. If the environment does not say yet where
 * one of them leads, it will say the same for both.
 */
export function sharesBroker(transport: TransportFactory, given: KafkaConnectionOptions["brokers"]): boolean {
  try {
    const [{ brokers }]: [KafkaAddress] = JSON.parse(transport.address);
    return parseKafka(given).brokers.some((broker) => brokers.includes(broker));
  } catch {
    return true;
  }
}
