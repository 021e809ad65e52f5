import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { onStopSignal, stopOnSignal } from "./stop-on-signal.ts";

const exit = mock.method(process, "exit", () => {});
const now = mock.method(performance, "now", () => 0);

function signalAt(ms: number, signal: NodeJS.Signals = "SIGINT"): void {
  now.mock.mockImplementation(() => ms);
  process.emit(signal);
}

for (const [what, listen] of [
  ["a command that goes on until then", stopOnSignal],
  ["a command that has something to stop", () => onStopSignal(() => {})],
] as const) {
  test(`a Ctrl-C that comes twice within a second is one, and a later one ends the process: ${what}`, () => {
    exit.mock.resetCalls();
    listen();
    signalAt(0);
    signalAt(5);
    signalAt(1_000, "SIGTERM");
    assert.equal(exit.mock.callCount(), 0);
    signalAt(1_001);
    assert.deepEqual(exit.mock.calls[0]?.arguments, [130]);
    process.removeAllListeners("SIGINT").removeAllListeners("SIGTERM");
  });
}

test("the first signal stops, and the later one abandons", () => {
  const heard: string[] = [];
  const listenNoMore = onStopSignal(
    () => heard.push("stop"),
    () => heard.push("abandon"),
  );
  signalAt(0);
  signalAt(2_000);
  assert.deepEqual(heard, ["stop", "abandon"]);
  listenNoMore();
  assert.deepEqual([process.listenerCount("SIGINT"), process.listenerCount("SIGTERM")], [0, 0]);
});
