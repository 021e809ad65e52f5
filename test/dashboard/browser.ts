import assert from "node:assert/strict";
import { type Browser, chromium, type Page } from "playwright-core";
import { roleOf } from "../../src/api/roles.ts";
import { findChromium } from "../../testbed/chromium.ts";
import { isFull } from "../full.ts";

/** Far beyond what the slowest machine needs: what is waited for comes, or never will. */
export const patienceMs = 60_000;

/** A server without kept figures answers 404, and the page shows no charts: a browser puts that on the console. */
const hasHistory = "GET /history" in roleOf;

const found = await findChromium();
export const { skip } = found;

let browser: Promise<Browser> | undefined;

/** One browser at a time for a test file; it ends with the file's process, or when it is closed. */
function theBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: found.path,
    // Chromium's own sandbox refuses to run as root. It sees nothing here but pages of these tests.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ["--disable-dev-shm-usage"],
  });
  return browser;
}

export async function closeBrowser(): Promise<void> {
  const closing = browser;
  browser = undefined;
  await (await closing)?.close();
}

export interface VisitOptions {
  readonly width?: number;
  readonly colours?: "light" | "dark";
  /** What is typed where the page asks who one is. */
  readonly token?: string;
}

/** How things are clicked: wide and light, narrow and dark, and all four in full. */
export const looks: readonly Required<Pick<VisitOptions, "width" | "colours">>[] = [
  { width: 1280, colours: "light" },
  { width: 400, colours: "dark" },
  ...(isFull
    ? ([
        { width: 1280, colours: "dark" },
        { width: 400, colours: "light" },
      ] as const)
    : []),
];

/** Somebody who looks at a dashboard, in a context of their own. */
export class Visit implements AsyncDisposable {
  readonly page: Page;
  readonly #url: string;
  /** Errors on the console, exceptions and dialogs: there is never one. */
  readonly problems: string[] = [];

  constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
    page.on("console", (message) => {
      const { url: asked } = message.location();
      const isExpected = !hasHistory && asked.includes("/api/history");
      if (message.type() === "error" && !isExpected) this.problems.push(`${message.text()} ${asked}`);
    });
    page.on("pageerror", (error) => this.problems.push(String(error)));
    page.on("dialog", (dialog) => {
      this.problems.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** Goes to a screen by its address, and waits for its heading and its content. */
  async open(path: string, heading: string | RegExp): Promise<void> {
    await this.page.goto(this.#url + path);
    await this.shows(heading);
  }

  async shows(heading: string | RegExp): Promise<void> {
    await this.page.getByRole("heading", { level: 1, name: heading }).waitFor();
    await this.page.getByText("Loading…").first().waitFor({ state: "hidden" });
  }

  /** Clicks what opens a dialog, gives a reason, and clicks the button that does it. */
  async act(opener: string, submit: string | RegExp, prepare?: () => Promise<unknown>): Promise<void> {
    await this.page.getByRole("main").getByRole("button", { name: opener, exact: true }).first().click();
    await prepare?.();
    await this.confirm(submit);
  }

  async confirm(submit: string | RegExp): Promise<void> {
    const dialog = this.page.getByRole("dialog");
    await dialog.getByLabel(/^Reason/).fill("because of a test");
    await dialog.getByRole("button", { name: submit }).click();
    await dialog.waitFor({ state: "hidden" });
  }

  assertCalm(): void {
    assert.deepEqual(this.problems, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
  }
}

/** Opens a page on a dashboard; `open` it on a screen next. */
export async function visit(url: string, options: VisitOptions = {}): Promise<Visit> {
  const { width = 1280, colours = "light", token } = options;
  const context = await (await theBrowser()).newContext({
    viewport: { width, height: 900 },
    colorScheme: colours,
    reducedMotion: "reduce",
    locale: "en-GB",
  });
  context.setDefaultTimeout(patienceMs);
  const visited = new Visit(await context.newPage(), url);
  if (token !== undefined) await signIn(visited, url, token);
  return visited;
}

async function signIn({ page, problems }: Visit, url: string, token: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  // That it had to be asked is on the console, as a 401.
  problems.length = 0;
}
