import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { type Clock, systemClock } from "../../../clock.ts";

/** Identifies the current boot of this machine: a lease of another boot has run out, since its clock restarted. */
export function bootId(clock: Clock): string {
  if (clock !== systemClock) return "a clock from outside";
  try {
    if (process.platform === "darwin") {
      return execFileSync("sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" }).trim();
    }
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Without an id of the boot, a lease from before a reboot lasts until the new clock reaches it.
    return `an unnamed boot (${process.platform})`;
  }
}
