import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { deliveryTests } from "./delivery.ts";
import { faultTests } from "./faults.ts";
import type { FragilePlace, TransportConformanceOptions, TransportPlace } from "./harness.ts";

/**
 * What every transport must do, on a real broker. Call it in a test file.
 *
 * @example
 * transportConformance({ name: "kafka", open: async () => kafkaPlace(url), openFragile: async () => fragileKafka() });
 */
export function transportConformance({ name, open, openFragile }: TransportConformanceOptions): void {
  describe(`the transport ${name}`, () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    before(() => process.on("unhandledRejection", note));

    describe("delivery [B8]", () => {
      let place: TransportPlace | undefined;
      before(async () => (place = await open()));
      after(() => place?.close());
      deliveryTests(() => opened(place));
    });

    describe("faults", () => {
      let place: FragilePlace | undefined;
      before(async () => (place = await openFragile()));
      after(() => place?.close());
      faultTests(() => opened(place));
    });

    test("no rejection was left unhandled", () => {
      process.off("unhandledRejection", note);
      assert.deepEqual(unhandled, []);
    });
  });
}

function opened<T>(place: T | undefined): T {
  assert(place !== undefined, "the place was not opened");
  return place;
}
