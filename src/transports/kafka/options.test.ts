import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type KafkaOptions, kafka } from "./route.ts";
import { type KafkaSourceOptions, kafkaSource } from "./source.ts";

/** What a program in JavaScript, or a variable that is not set, may give. */
const route = (options: object) => kafka({ topic: "t", ...options } as KafkaOptions);
const source = (options: object) => kafkaSource({ topic: "t", group: "g", ...options } as KafkaSourceOptions);

const bad: readonly (readonly [make: () => unknown, says: RegExp])[] = [
  [() => route({ topic: undefined }), /kafka's topic to be 1 to 249 .*, got undefined$/],
  [() => route({ topic: "." }), /kafka's topic to be 1 to 249 .*, got "\."$/],
  [() => route({ topic: ".." }), /kafka's topic to be 1 to 249 .*, got "\.\."$/],
  [() => route({ compression: null }), /kafka's compression to be one of .*, got null$/],
  [() => route({ maxBatchBytes: null }), /kafka's maxBatchBytes to be a whole number .*, got null$/],
  [() => route({ dispatchTimeout: 0 }), /kafka's dispatchTimeout to be a duration of at least 1ms, got 0$/],
  [() => route({ dispatchTimeout: null }), /kafka's dispatchTimeout to be a duration .*, got null$/],
  [() => route({ brokers: null }), /kafka's brokers to be a string or a list of strings, got null$/],
  [() => route({ brokers: "" }), /kafka's brokers to be a string or a list of strings, got an empty string$/],
  [() => route({ brokers: [] }), /kafka's brokers to be a string or a list of strings, got an empty list$/],
  [() => route({ brokers: ["a:1", null] }), /kafka's brokers to be .*, got a list with null in it$/],
  [() => route({ brokers: { host: "a" } }), /kafka's brokers to be .*, got an object$/],
  [
    () => route({ brokers: "kafka://me:hidden@a/b/c" }),
    /kafka's brokers to be kafka:.*, got another string$/,
  ],
  [
    () => route({ brokers: ["kafka://me:hidden@a", "kafka://me:hidden@b"] }),
    /kafka's brokers to be kafka:.*, got another string$/,
  ],
  [
    () => route({ brokers: "kafka://me:hidden@a,me:hidden@b" }),
    /each host in kafka's brokers to be host or host:port/,
  ],
  [() => route({ brokers: "a:1,,b:1" }), /each host in kafka's brokers to be host or host:port/],
  [() => route({ brokers: "a:99999" }), /each host in kafka's brokers .* from 1 to 65535/],
  [() => route({ brokers: "a:0" }), /each host in kafka's brokers .* from 1 to 65535/],
  [() => route({ brokers: "kafka://me:hidden%@a" }), /login in kafka's brokers to be percent-encoded/],
  [() => route({ brokers: "kafka://:hidden@a" }), /login in kafka's brokers .* has no user$/],
  [() => route({ brokers: "kafka://a?mechansim=PLAIN" }), /unknown option "mechansim" of kafka's brokers/],
  [
    () => route({ brokers: "kafka://a?mechanism=MD5" }),
    /mechanism in kafka's brokers to be one of .*, got "MD5"$/,
  ],
  [() => source({ topic: "" }), /kafkaSource's topic to be 1 to 249 .*, got ""$/],
  [() => source({ group: null }), /kafkaSource's group to be a string .*, got null$/],
  [() => source({ brokers: 9_092 }), /kafka's brokers to be .*, got a number$/],
  [
    () => source({ sessionTimeout: 0 }),
    /kafkaSource's sessionTimeout to be a duration of at least 1s, got 0$/,
  ],
  [
    () => source({ sessionTimeout: "30d" }),
    /kafkaSource's sessionTimeout to be a duration of at most 1d, got "30d"$/,
  ],
  [() => source({ sessionTimeout: null }), /kafkaSource's sessionTimeout to be a duration .*, got null$/],
];

describe("options of Kafka that cannot be meant are refused, and passwords are not repeated", () => {
  for (const [make, says] of bad) {
    test(String(says), () => {
      assert.throws(make, (error: Error & { readonly code?: string }) => {
        assert.match(error.message, says);
        assert.match(error.code ?? "", /^invalid-(option|duration|name)$/);
        assert.doesNotMatch(error.message, /hidden/);
        return true;
      });
    });
  }
});
