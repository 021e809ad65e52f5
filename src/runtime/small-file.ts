import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { EscapementError } from "../errors.ts";

/** Far more than anyone writes by hand. */
const maxBytes = 4 * 1024 * 1024;

// Opening a pipe without a writer would block forever. Windows does not know the flag.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Reads a file that a person wrote. A folder, a pipe, a device, or one that is far too large is refused instead of hanging or filling the memory. */
export function readSmallFile(path: string): string {
  const file = openSync(path, flags);
  try {
    const status = fstatSync(file);
    if (!status.isFile())
      throw new EscapementError("invalid-option", `expected ${path} to be a file, got something else`);
    const buffer = Buffer.alloc(Math.min(status.size, maxBytes) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(file, buffer, length, buffer.length - length, length);
    }
    if (length <= maxBytes) return buffer.toString("utf8", 0, length);
    throw new EscapementError(
      "invalid-option",
      `expected ${path} to have at most ${maxBytes} bytes, got ${status.size}`,
    );
  } finally {
    closeSync(file);
  }
}
