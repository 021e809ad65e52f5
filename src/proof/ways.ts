import { FaultProxy } from "./proxy.ts";

/** What can be done to the way to a server. */
export type Way = Pick<FaultProxy, "pass" | "delay" | "cut" | "blackHole" | "dropReplies">;

/** The way to a server, through one proxy for each of its nodes; all of them are disturbed together. */
export class Ways implements Way, AsyncDisposable {
  readonly #proxies: readonly FaultProxy[];

  constructor(...proxies: readonly FaultProxy[]) {
    this.#proxies = proxies;
  }

  static async to(targets: readonly string[]): Promise<Ways> {
    return new Ways(...(await Promise.all(targets.map((target) => FaultProxy.start(target)))));
  }

  /** The targets, through the proxies. */
  get urls(): string[] {
    return this.#proxies.map(({ url }) => url);
  }

  pass(): void {
    for (const proxy of this.#proxies) proxy.pass();
  }

  delay(latencyMs: number): void {
    for (const proxy of this.#proxies) proxy.delay(latencyMs);
  }

  cut(forMs = 0): void {
    for (const proxy of this.#proxies) proxy.cut(forMs);
  }

  blackHole(forMs: number): void {
    for (const proxy of this.#proxies) proxy.blackHole(forMs);
  }

  dropReplies(forMs: number): void {
    for (const proxy of this.#proxies) proxy.dropReplies(forMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
  }
}
