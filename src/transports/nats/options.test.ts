import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type NatsOptions, nats } from "./route.ts";
import { type NatsSourceOptions, natsSource } from "./source.ts";

/** What a program in JavaScript, or a variable that is not set, may give. */
const route = (options: object) => nats({ subject: "s", ...options } as NatsOptions);
const source = (options: object) =>
  natsSource({ stream: "S", consumer: "c", ...options } as NatsSourceOptions);

const bad: readonly (readonly [make: () => unknown, says: RegExp])[] = [
  [() => route({ subject: undefined }), /nats' subject to be a subject .*, got undefined$/],
  [() => route({ subject: "a..b" }), /nats' subject to be a subject .*, got "a\.\.b"$/],
  [() => route({ subject: "a\u0000" }), /nats' subject to be a subject/],
  [() => route({ dispatchTimeout: 0 }), /nats' dispatchTimeout to be a duration of at least 1ms, got 0$/],
  [() => route({ dispatchTimeout: null }), /nats' dispatchTimeout to be a duration .*, got null$/],
  [() => route({ servers: null }), /nats' servers to be a string or a list of strings, got null$/],
  [() => route({ servers: "" }), /nats' servers to be a string or a list of strings, got an empty string$/],
  [() => route({ servers: ["a", ""] }), /nats' servers to be .*, got a list with an empty string in it$/],
  [() => route({ servers: { host: "a" } }), /nats' servers to be .*, got an object$/],
  [
    () => route({ servers: ["nats://me:hidden@a", "nats://me:hidden@b"] }),
    /nats' servers to be nats:.*, got another string$/,
  ],
  [
    () => route({ servers: "nats://me:hidden@a,me:hidden@b" }),
    /each host in nats' servers to be host or host:port/,
  ],
  [() => route({ servers: "a:b" }), /each host in nats' servers to be host or host:port/],
  [() => route({ servers: "nats://me:hidden%@a" }), /login in nats' servers to be percent-encoded/],
  [() => source({ stream: null }), /natsSource's stream to be a name .*, got null$/],
  [() => source({ consumer: "" }), /natsSource's consumer to be a name .*, got ""$/],
  [() => source({ servers: 4_222 }), /nats' servers to be .*, got a number$/],
  [() => source({ subject: "" }), /natsSource's subject to be a subject .*, got ""$/],
  [() => source({ subject: null }), /natsSource's subject to be a subject .*, got null$/],
  [() => source({ subject: "a.>.b" }), /natsSource's subject to be a subject .*, got "a\.>\.b"$/],
  [() => source({ subject: ["a", "b"] }), /natsSource's subject to be a subject/],
  [() => source({ ackWait: 0 }), /natsSource's ackWait to be a duration of at least 100ms, got 0$/],
  [() => source({ ackWait: null }), /natsSource's ackWait to be a duration .*, got null$/],
];

describe("options of NATS that cannot be meant are refused, and passwords are not repeated", () => {
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

test("what a source reads may have wildcards", () => {
  for (const subject of ["payments.due", "payments.*", "*.due", "payments.>", ">"]) source({ subject });
});
