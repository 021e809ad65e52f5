export type { KafkaConnectionOptions } from "./address.ts";
export { type KafkaOptions, kafka } from "./route.ts";
