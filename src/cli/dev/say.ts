import { printableJson } from "../../runtime/printable.ts";
import { Painted, render } from "../output.ts";

/** Prints an event of `dev` as those of jobs are: a line for a person, or of JSON for a program. */
export function say(
  json: boolean | undefined,
  event: "dashboard" | "running" | "changed" | "restarting" | "waiting" | "broken" | "ended" | "stopping",
  facts: object,
  text = "",
): void {
  const at = new Date().toISOString();
  if (json === true) return console.log(printableJson({ at, event, ...facts }));
  const name = event.padEnd(10);
  const isTrouble = event === "broken" || event === "ended";
  console.log(render([`${at} `, isTrouble ? new Painted(name, "red") : name, ` ${text}`]));
}
