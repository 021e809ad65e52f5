export { type RedisStreamsOptions, redisStreams } from "./route.ts";
export { type RedisStreamsSourceOptions, redisStreamsSource } from "./source.ts";
