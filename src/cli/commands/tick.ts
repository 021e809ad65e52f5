import type { Command } from "commander";
import type { Left } from "../../app/tick.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print } from "../output.ts";

export function tickCommand(): Command {
  return appCommand(
    "tick",
    "run what is due now, then stop: for machines that an external scheduler wakes",
  ).action(async (flags: AppFlags) => {
    const ticked = await withApp(flags, "make", (app) => app.tick());
    const { succeeded, failed, reaped, left } = ticked;
    print(flags.json, ticked, () => [
      `${succeeded} succeeded, ${failed} failed, ${reaped} reaped`,
      ...describeLeft(left),
    ]);
  });
}

function describeLeft({ count, unpublished, paused, unhandled }: Left): string[] {
  if (count === 0) return [];
  const reasons: [number, string][] = [
    [unpublished, "could not be published"],
    [paused, "in a paused queue"],
    [unhandled, "with a name that no definition here has"],
  ];
  const known = reasons.filter(([some]) => some > 0).map(([some, why]) => `${some} ${why}`);
  const what = count === 1 ? "1 due job is left" : `${count} due jobs are left`;
  return [known.length === 0 ? what : `${what}: ${known.join(", ")}`];
}
