import { provide } from "./software.ts";

/** A browser that Playwright can drive, by its path; or, when `skip` is a text, the reason why there is none. */
export interface Chromium {
  readonly skip: false | string;
  readonly path: string;
}

/**
 * Finds Chromium as servers are found: a path in `ESCAPEMENT_TEST_CHROMIUM`, a binary on the machine, else `apt-get`. With `CI=true`, that there is
 * none is an error.
 */
export async function findChromium(): Promise<Chromium> {
  const given = process.env["ESCAPEMENT_TEST_CHROMIUM"];
  if (given !== undefined) return { skip: false, path: given };
  const tools = await provide([
    { programs: ["chromium"], packages: [["chromium"]] },
    { programs: ["google-chrome"], packages: [] },
    { programs: ["chromium-browser"], packages: [] },
  ]);
  if (typeof tools === "object") {
    const [program] = tools.software.programs;
    return { skip: false, path: tools.command(program, []).file };
  }
  const reason = `Chromium cannot be had: ${tools}`;
  if (process.env["CI"] === "true") throw new Error(`${reason} (and CI=true)`);
  return { skip: reason, path: "" };
}
