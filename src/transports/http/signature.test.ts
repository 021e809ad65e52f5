import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signWebhook, verifyWebhook } from "./signature.ts";

/** The vector that the Standard Webhooks libraries are tested with. */
const vector = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  at: new Date(1_614_265_330_000),
  body: '{"test": 2432232314}',
};
const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";

describe("the signature of Standard Webhooks", () => {
  test("it agrees with the libraries of Standard Webhooks", () => {
    assert.deepEqual(signWebhook(vector), {
      "webhook-id": vector.id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": signature,
    });
    verifyWebhook({ ...vector, headers: signWebhook(vector) });
  });

  test("while a secret is replaced, either side may already know the new one", () => {
    const both = [other, vector.secret];
    verifyWebhook({ ...vector, headers: signWebhook({ ...vector, secret: both }) });
    verifyWebhook({ ...vector, secret: both, headers: signWebhook(vector) });
  });

  const bad: readonly (readonly [what: string, change: (headers: Record<string, string>) => object])[] = [
    ["another body", () => ({ body: '{"test": 2432232315}' })],
    ["another id", (headers) => ({ headers: { ...headers, "webhook-id": "msg_2" } })],
    ["another time", (headers) => ({ headers: { ...headers, "webhook-timestamp": "1614265331" } })],
    ["another secret", () => ({ secret: other })],
    ["no signature", ({ "webhook-signature": _gone, ...headers }) => ({ headers })],
    ["an empty signature", (headers) => ({ headers: { ...headers, "webhook-signature": "" } })],
    [
      "another version",
      (headers) => ({ headers: { ...headers, "webhook-signature": signature.replace("v1,", "v2,") } }),
    ],
    ["a time that is none", (headers) => ({ headers: { ...headers, "webhook-timestamp": "1e9" } })],
    ["a message of yesterday", () => ({ at: new Date(vector.at.getTime() + 86_400_000) })],
    ["a message of tomorrow", () => ({ at: new Date(vector.at.getTime() - 86_400_000) })],
  ];
  for (const [what, change] of bad) {
    test(`${what} is refused`, () => {
      const headers = signWebhook(vector);
      assert.throws(() => verifyWebhook({ ...vector, headers, ...change(headers) }), {
        code: "invalid-signature",
      });
    });
  }
});
