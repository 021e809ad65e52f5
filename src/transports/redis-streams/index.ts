export { type RedisStreamsOptions, redisStreams } from "./route.ts";
