import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type HttpOptions, http } from "./route.ts";
import { secret } from "./test/place.ts";

/** What a program in JavaScript, or a variable that is not set, may give. */
const bad: readonly (readonly [options: object, says: RegExp])[] = [
  [{ allow: "127.0.0.1" }, /allow to be a list of addresses or ranges .*, got "127\.0\.0\.1"$/],
  [{ allow: null }, /allow to be a list .*, got null$/],
  [{ allow: [null] }, /allow to be a list .*, got null$/],
  [{ allow: [""] }, /allow to be a list .*, got ""$/],
  [{ headers: null }, /headers to be an object such as .*, got null$/],
  [{ headers: "authorization: x" }, /headers to be an object such as .*, got a string$/],
  [{ headers: ["authorization", "x"] }, /headers to be an object such as .*, got a list$/],
  [{ headers: new Headers({ authorization: "x" }) }, /headers to be an object such as .*, got an object$/],
  [{ headers: { authorization: undefined } }, /header "authorization" to be a string .*, got undefined$/],
  [{ headers: { authorization: 7_777 } }, /header "authorization" to be a string .*, got a number$/],
  [
    { headers: { authorization: "für hidden" } },
    /header "authorization" to be a string .*, got another string$/,
  ],
  [{ headers: { "": "x" } }, /names of headers .*, got ""$/],
  [{ requestTimeout: 0 }, /requestTimeout to be a duration of at least 1ms, got 0$/],
  [{ requestTimeout: -1 }, /requestTimeout to be a duration .*, got -1$/],
  [{ requestTimeout: null }, /requestTimeout to be a duration .*, got null$/],
  [{ dispatchTimeout: "0s" }, /dispatchTimeout to be a duration of at least 1ms, got "0s"$/],
  [{ dispatchTimeout: null }, /dispatchTimeout to be a duration .*, got null$/],
  [{ concurrency: null }, /concurrency to be a whole number from 1 to 1000, got null$/],
  [{ concurrency: "8" }, /concurrency to be a whole number from 1 to 1000, got "8"$/],
  [{ maxRedirects: null }, /maxRedirects to be a whole number from 0 to 20, got null$/],
  [{ url: undefined }, /url to be an http or https URL .*, got undefined$/],
  [{ url: "" }, /url to be an http or https URL .*, got ""$/],
  [{ url: "https://user:hidden@host:port/" }, /url to be an http or https URL .*, got another string$/],
  [{ url: new URL("https://user:hidden@host/") }, /url to be an http or https URL .*, got an object$/],
  [{ secret: undefined }, /openssl rand -base64 32.*, got undefined; is the variable set/],
  [{ secret: "" }, /openssl rand -base64 32.*, got an empty string; is the variable set/],
  [{ secret: null }, /openssl rand -base64 32.*, got null$/],
  [{ secret: 7_777 }, /openssl rand -base64 32.*, got a number$/],
  [{ secret: [secret, undefined] }, /openssl rand -base64 32.*, got undefined; is the variable set/],
  [{ secret: "hunter2" }, /openssl rand -base64 32.*, got a string that does not begin with whsec_$/],
  [{ secret: `${secret}\n` }, /openssl rand -base64 32.*, got a string whose rest is not base64$/],
  [{ secret: "whsec_c2hvcnQ=" }, /openssl rand -base64 32.*, got 5 bytes$/],
];

describe("options of http that cannot be meant are refused, and secrets are not repeated", () => {
  for (const [options, says] of bad) {
    test(String(says), () => {
      const given = { url: "https://host/", secret, ...options } as HttpOptions;
      assert.throws(
        () => http(given),
        (error: Error & { readonly code?: string }) => {
          assert.match(error.message, says);
          assert.match(error.code ?? "", /^invalid-(option|duration)$/);
          assert.doesNotMatch(error.message, /hunter2|hidden|c2hvcnQ|7777|MfKQ/);
          return true;
        },
      );
    });
  }
});

test("what is not given has its default", () => {
  const given = {
    url: "https://host/",
    secret,
    headers: undefined,
    allow: undefined,
    dispatchTimeout: undefined,
  };
  assert.equal(http(given as unknown as HttpOptions).dispatchTimeoutMs, 300_000);
});
