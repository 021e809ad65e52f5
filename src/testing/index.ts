export type { ConformanceHarness, ConformanceOptions } from "./conformance/harness.ts";
export { storeConformance } from "./conformance/suite.ts";
export { createTestEscapement, TestEscapement } from "./kit.ts";
export { type CompareOptions, compareStores, seedsToRun } from "./random/compare.ts";
export { VirtualClock } from "./virtual-clock.ts";
