const units = ["bytes", "KB", "MB", "GB", "TB"] as const;
const step = 1_024;

/** A number of bytes for a person: `512 bytes`, `1.5 KB`, `18 MB`. */
export function sizeOf(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // What would be rounded to 1024 of a unit is one of the next.
  while (Math.round(value) >= step && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  const isShort = unit > 0 && value < 9.95;
  return `${isShort ? Number(value.toFixed(1)) : Math.round(value)} ${units[unit]}`;
}
