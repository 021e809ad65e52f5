export type { KafkaConnectionOptions } from "./address.ts";
export { type KafkaOptions, kafka } from "./route.ts";
export { type KafkaSourceOptions, kafkaSource } from "./source.ts";
