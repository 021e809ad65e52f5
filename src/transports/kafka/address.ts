import { describe, EscapementError } from "../../errors.ts";
import { checkOneOf } from "../../options.ts";

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

/** A message never repeats the text, it may hold a password. */
export function parseKafka(given: KafkaConnectionOptions["brokers"]): KafkaAddress {
  const text = given === undefined ? process.env["ESCAPEMENT_KAFKA"] : [given].flat().join(",");
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
      `expected kafka's brokers to be kafka://user:password@host:port,… or host:port,…, got ${given === undefined || typeof given === "string" ? "another text" : describe(given)}`,
    );
  }
  const [username = "", password = ""] = (login ?? "").split(/:(.*)/s).map(decodeURIComponent);
  const mechanism = new URLSearchParams(query).get("mechanism") ?? "PLAIN";
  return {
    brokers: hosts.split(",").map((host) => (/:\d+$/.test(host) ? host : `${host}:9092`)),
    tls: secure !== undefined,
    sasl:
      username === ""
        ? null
        : {
            mechanism: checkOneOf(mechanism, mechanisms, "the mechanism in kafka's brokers"),
            username,
            password,
          },
  };
}
