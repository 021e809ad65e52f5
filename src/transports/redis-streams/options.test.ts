import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type RedisStreamsOptions, redisStreams } from "./route.ts";
import { type RedisStreamsSourceOptions, redisStreamsSource } from "./source.ts";

/** What a program in JavaScript, or a variable that is not set, may give. */
const route = (options: object) => redisStreams({ stream: "s", ...options } as RedisStreamsOptions);
const source = (options: object) =>
  redisStreamsSource({ stream: "s", group: "g", ...options } as RedisStreamsSourceOptions);

const bad: readonly (readonly [make: () => unknown, says: RegExp])[] = [
  [() => route({ stream: null }), /redisStreams' stream to be a string .*, got null$/],
  [() => route({ url: null }), /url to be redis:.*, got null$/],
  [() => route({ url: "" }), /url to be redis:.*, got another string$/],
  [() => route({ url: ["redis://a"] }), /url to be redis:/],
  [() => route({ url: "http://me:hidden@a" }), /url to be redis:.*, got another string$/],
  [() => route({ url: "redis://:hidden%@a" }), /login in redis' url to be percent-encoded/],
  [() => route({ maxLength: null }), /redisStreams' maxLength to be a whole number .*, got null$/],
  [() => route({ shards: null }), /redisStreams' shards to be a whole number .*, got null$/],
  [
    () => route({ maxMessageBytes: null }),
    /redisStreams' maxMessageBytes to be a whole number .*, got null$/,
  ],
  [() => route({ maxMessageBytes: 0 }), /redisStreams' maxMessageBytes to be a number .*, got 0$/],
  [
    () => route({ dispatchTimeout: 0 }),
    /redisStreams' dispatchTimeout to be a duration of at least 1ms, got 0$/,
  ],
  [() => route({ dispatchTimeout: null }), /redisStreams' dispatchTimeout to be a duration .*, got null$/],
  [() => source({ group: undefined }), /redisStreamsSource's group to be a string .*, got undefined$/],
  [() => source({ url: 6_379 }), /url to be redis:.*, got 6379$/],
  [() => source({ shards: null }), /redisStreamsSource's shards to be a whole number .*, got null$/],
  [() => source({ lease: 0 }), /redisStreamsSource's lease to be a duration of at least 100ms, got 0$/],
  [() => source({ lease: null }), /redisStreamsSource's lease to be a duration .*, got null$/],
  [
    () => source({ deleteHandled: "no" }),
    /redisStreamsSource's deleteHandled to be true or false, got "no"$/,
  ],
  [
    () => source({ deleteHandled: null }),
    /redisStreamsSource's deleteHandled to be true or false, got null$/,
  ],
];

describe("options of Redis Streams that cannot be meant are refused, and passwords are not repeated", () => {
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
