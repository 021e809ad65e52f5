import { openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../clock.ts";
import type { JobFacts } from "../job.ts";
import type { FaultWindow, LogLine } from "./history.ts";
import type { RelayLine } from "./relay/evidence.ts";

type Line =
  | { readonly line: LogLine }
  | { readonly relay: RelayLine }
  | { readonly fault: FaultWindow }
  | { readonly trouble: Trouble };

/** What a relay's line says, without who says it and when. */
type RelayWords = RelayLine extends infer Line
  ? Line extends RelayLine
    ? Omit<Line, "node" | "atMs">
    : never
  : never;

/** An error that a node told of: no evidence of anything by itself, but where to look. */
export interface Trouble {
  readonly node: string;
  readonly atMs: number;
  readonly during: string;
  readonly message: string;
}

export interface NodeLogs {
  readonly lines: readonly LogLine[];
  readonly relay: readonly RelayLine[];
  readonly faults: readonly FaultWindow[];
  readonly troubles: readonly Trouble[];
}

/** A node's own file, outside of the store that is tested. Each line is written at once: whatever kills the process, it stays. */
export class NodeLog {
  readonly #node: string;
  readonly #file: number;

  constructor(node: string, path: string) {
    this.#node = node;
    this.#file = openSync(path, "a");
  }

  start(job: JobFacts, claimedAtMs: number | null): void {
    this.#note("start", job, null, claimedAtMs);
  }

  line(what: Exclude<LogLine["what"], "start">, job: JobFacts, how: LogLine["how"] = null): void {
    this.#note(what, job, how, null);
  }

  #note(what: LogLine["what"], job: JobFacts, how: LogLine["how"], claimedAtMs: number | null): void {
    const { id, token, schedule, fireAt } = job;
    const line: LogLine = {
      what,
      node: this.#node,
      job: id,
      token,
      atMs: systemClock.monotonic(),
      claimedAtMs,
      how,
      schedule,
      fireAt: schedule === null ? null : fireAt.getTime(),
    };
    this.#write({ line });
  }

  relay(words: RelayWords): void {
    this.#write({ relay: { ...words, node: this.#node, atMs: systemClock.monotonic() } });
  }

  fault(kind: FaultWindow["kind"], fromMs: number, untilMs: number, detail: string): void {
    this.#write({ fault: { kind, node: this.#node, fromMs, untilMs, detail } });
  }

  trouble(during: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#write({ trouble: { node: this.#node, atMs: systemClock.monotonic(), during, message } });
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** Reads what all processes wrote, or those whose names begin so. */
export function readLogs(folder: string, prefix = ""): NodeLogs {
  const lines: LogLine[] = [];
  const relay: RelayLine[] = [];
  const faults: FaultWindow[] = [];
  const troubles: Trouble[] = [];
  for (const file of readdirSync(folder).filter((name) => name.startsWith(prefix) && name.endsWith(".log"))) {
    for (const text of readFileSync(join(folder, file), "utf8").split("\n")) {
      const read = parse(text);
      if (read === null) continue;
      if ("line" in read) lines.push(read.line);
      else if ("relay" in read) relay.push(read.relay);
      else if ("fault" in read) faults.push(read.fault);
      else troubles.push(read.trouble);
    }
  }
  return {
    lines: lines.toSorted((a, b) => a.atMs - b.atMs),
    relay: relay.toSorted((a, b) => a.atMs - b.atMs),
    faults,
    troubles: troubles.toSorted((a, b) => a.atMs - b.atMs),
  };
}

/** The last line of a process that was killed may be cut off. */
function parse(text: string): Line | null {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
