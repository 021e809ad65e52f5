export { type NatsOptions, nats } from "./route.ts";
