export type Labels = Readonly<Record<string, string>>;

export interface Counting {
  inc(labels: Labels): void;
}

export interface Measuring {
  /** In the unit that the name ends with. */
  observe(labels: Labels, value: number): void;
}

/** One line of a gauge. */
export interface Reading {
  readonly labels: Labels;
  readonly value: number;
}

/** Makes what counts. Names are those of Prometheus: `_total` for counters, the unit at the end of others. */
export interface Instruments {
  counter(name: string, help: string, labelNames?: readonly string[]): Counting;
  histogram(name: string, help: string, labelNames?: readonly string[]): Measuring;
  /** Read at each collection; what is not read is not shown. */
  gauge(name: string, help: string, labelNames: readonly string[], read: () => readonly Reading[]): void;
}
