import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MultipleErrors, NetworkError, ResponseError } from "@platformatic/kafka";
import { verdictOf } from "./verdict.ts";

/** A broker's answer to a produce request, as the client gives it: an error code for each partition. */
function answer(codes: Readonly<Record<number, number>>): Error {
  const partitionResponses = Object.entries(codes).map(([index, errorCode]) => ({
    index: Number(index),
    errorCode,
  }));
  const errors = partitionResponses.flatMap(({ errorCode }, place) =>
    errorCode === 0 ? [] : [[`/responses/0/partition_responses/${place}`, [errorCode, null]]],
  );
  return new ResponseError(0, 11, Object.fromEntries(errors), {
    responses: [{ name: "t", partitionResponses }],
  });
}

const notConnected = new NetworkError("Connection to 127.0.0.1:9092 failed.");
const cut = new NetworkError("Connection closed");
const tries = (...errors: Error[]): Error => new MultipleErrors("produce failed 3 times.", errors);
const verdict = (error: Error, partition = 0): string => {
  const found = verdictOf(error, "t", partition, "here");
  if (found.kind !== "failed") return found.kind;
  const { result } = found;
  return result.kind === "refused" && result.permanent ? "refused for good" : result.kind;
};

describe("what a failed send to Kafka means", () => {
  test("no connection, however often it was tried: refused", () => {
    assert.equal(verdict(notConnected), "refused");
    assert.equal(verdict(tries(notConnected, notConnected)), "refused");
    assert.equal(
      verdict(tries(new MultipleErrors("Cannot connect to any broker.", [notConnected]))),
      "refused",
    );
  });

  test("cut once it may have been sent: ambiguous, whatever came after that", () => {
    assert.equal(verdict(cut), "ambiguous");
    assert.equal(verdict(tries(cut, notConnected)), "ambiguous");
    assert.equal(verdict(tries(notConnected, cut)), "ambiguous");
    assert.equal(verdict(tries(cut, answer({ 0: 6 }))), "ambiguous", "the first may have been written");
  });

  test("each partition has an answer of its own", () => {
    const mixed = answer({ 0: 0, 1: 6, 2: 10, 3: 29, 4: 20 });
    assert.equal(verdict(mixed, 0), "acknowledged");
    assert.equal(verdict(mixed, 1), "refused");
    assert.equal(verdict(mixed, 2), "too-large");
    assert.equal(verdict(mixed, 3), "refused for good");
    assert.equal(verdict(mixed, 4), "ambiguous");
  });

  test("the last answer counts: sequence numbers make a repeated write the same write", () => {
    assert.equal(verdict(tries(answer({ 0: 7 }), answer({ 0: 0, 1: 6 }))), "acknowledged");
    assert.equal(verdict(tries(answer({ 0: 19 }), answer({ 0: 19 }))), "refused");
  });

  test("an error that nobody knows is ambiguous", () => {
    assert.equal(verdict(new Error("what is this")), "ambiguous");
  });
});
