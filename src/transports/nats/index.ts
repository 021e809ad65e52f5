export { type NatsOptions, nats } from "./route.ts";
export { type NatsSourceOptions, natsSource } from "./source.ts";
