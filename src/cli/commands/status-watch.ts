import { setTimeout as delay } from "node:timers/promises";
import { isTransient } from "../../errors.ts";
import type { Operations, Overview } from "../../operations/operations.ts";
import { printableJson } from "../../runtime/printable.ts";
import { columnsOf, render } from "../output.ts";
import { troubleOf } from "../patience.ts";
import { RateMeter, type Rates } from "../rates.ts";
import { stopOnSignal } from "../stop-on-signal.ts";
import { cutTo } from "../text-width.ts";
import { screenLines } from "./status-screen.ts";

export interface WatchFlags {
  readonly every: number;
  readonly json?: boolean;
}

/** Looking may take no more than this share of the store's time. */
const share = 4;

const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";

/** Shows the overview again and again: on a terminal as a screen, elsewhere line after line. */
export async function watchStatus(
  operations: Operations,
  namespace: string,
  flags: WatchFlags,
): Promise<void> {
  const stopping = stopOnSignal();
  const onScreen = isScreen(flags);
  const keys = onScreen ? listenForKeys(stopping) : null;
  const signal = keys === null ? stopping : AbortSignal.any([stopping, keys.signal]);
  const meter = new RateMeter();
  let isBegun = !onScreen;
  if (onScreen) process.stdout.write(enter);
  try {
    while (!signal.aborted) {
      const startedAt = performance.now();
      try {
        const overview = await operations.overview();
        if (!isBegun) meter.begin((await operations.history()).points, overview.now);
        isBegun = true;
        show(overview, meter.add(overview), `escapement ${namespace}`, flags, onScreen);
      } catch (error) {
        if (!isTransient(error) || !onScreen) throw error;
        showTrouble(error);
      }
      const tookMs = performance.now() - startedAt;
      await delay(Math.max(flags.every, share * tookMs), undefined, { signal }).catch(() => {});
    }
  } finally {
    if (onScreen) process.stdout.write(leave);
    keys?.stop();
  }
}

export function isScreen({ json }: WatchFlags): boolean {
  return process.stdout.isTTY && json !== true;
}

function show(
  overview: Overview,
  rates: Rates,
  title: string,
  { json }: WatchFlags,
  onScreen: boolean,
): void {
  if (json === true) {
    const latest = { succeeded: rates.succeeded.at(-1) ?? null, failed: rates.failed.at(-1) ?? null };
    process.stdout.write(`${printableJson({ ...overview, perSecond: latest })}\n`);
    return;
  }
  const columns = columnsOf();
  const rows = onScreen ? process.stdout.rows : 60;
  const lines = screenLines(overview, rates, { columns, rows, title }).map((line) => render(line));
  if (onScreen)
    process.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  else process.stdout.write(`${lines.join("\n")}\n\n`);
}

/** A store that is away for a moment is no reason to leave the screen, and none to pass off what it shows as new. */
export function showTrouble(error: unknown): void {
  const text = `${new Date().toISOString().slice(11, 19)} ${troubleOf(error)}`;
  process.stdout.write(`\u001b[H${render(cutTo(text, columnsOf() - 1))}\u001b[K`);
}

interface Keys {
  readonly signal: AbortSignal;
  stop(): void;
}

/** q and Ctrl-C end it: in raw mode Ctrl-C is a key like any other. */
function listenForKeys(stopping: AbortSignal): Keys {
  const { stdin } = process;
  const controller = new AbortController();
  const onKey = (data: Buffer): void => {
    if (["q", "Q", "\u0003", "\u0004"].some((key) => data.includes(key))) controller.abort();
  };
  if (stdin.isTTY) {
    stdin.setRawMode(true);
    stdin.on("data", onKey);
    stdin.resume();
  }
  const stop = (): void => {
    if (!stdin.isTTY) return;
    stdin.setRawMode(false);
    stdin.off("data", onKey);
    stdin.pause();
  };
  stopping.addEventListener("abort", stop, { once: true });
  return { signal: controller.signal, stop };
}
