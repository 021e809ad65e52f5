export type { ConformanceHarness, ConformanceOptions } from "./conformance/harness.ts";
export { storeConformance } from "./conformance/suite.ts";
export { createTestEscapement, TestEscapement } from "./kit.ts";
export { type CompareOptions, compareStores, seedsToRun } from "./random/compare.ts";
export type {
  Arrived,
  FragilePlace,
  TransportConformanceOptions,
  TransportPlace,
} from "./transports/harness.ts";
export { transportConformance } from "./transports/suite.ts";
export { VirtualClock } from "./virtual-clock.ts";
