// The whole store is one JSON document in a file. Every verb locks it, reads it, changes it and writes it back.

import { mkdir, open, readFile, rename, rmdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { NewJob, StoredJob, TrailEntry } from "../../src/store/index.ts";

/** A job as the document has it: what the contract knows, with instants as numbers, and what only the store needs. */
export type Row = Undated<Omit<StoredJob, "waitsFor">> &
  Pick<NewJob, "afterFailure"> & {
    waitsFor: string[];
    /** On the monotonic clock; null unless it is active. */
    leaseUntil: number | null;
    /** The latest finish, so that repeating it is known. */
    finished: { token: number; claimer: string } | null;
    trail: Undated<TrailEntry>[];
  };

type Undated<T> = {
  -readonly [K in keyof T]: T[K] extends Date ? number : T[K] extends Date | null ? number | null : T[K];
};

/** One namespace. */
export interface Document {
  /** In the order of enqueueing. */
  jobs: Row[];
  /** The latest claim of each claimer, so that repeating it repeats its answer. */
  claims: Record<string, { sequence: number; jobs: { id: string; token: number }[] }>;
}

export function find(document: Document, id: string): Row | undefined {
  return document.jobs.find((job) => job.id === id);
}

/** Runs one verb at a time, over all processes: the process that makes the folder has the lock. A toy: nothing frees the lock of a dead process. */
export async function change<T>(path: string, work: (document: Document) => T): Promise<T> {
  const lock = `${path}.lock`;
  for (;;) {
    try {
      await mkdir(lock);
      break;
    } catch {
      await delay(2);
    }
  }
  try {
    const text = await readFile(path, "utf8").catch(() => '{"jobs":[],"claims":{}}');
    const document: Document = JSON.parse(text);
    const result = work(document);
    await write(path, JSON.stringify(document));
    return result;
  } finally {
    await rmdir(lock);
  }
}

/** The new document takes the place of the old one in one step, and only once it is on the disk. */
async function write(path: string, text: string): Promise<void> {
  const next = `${path}.next`;
  const file = await open(next, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(next, path);
}
