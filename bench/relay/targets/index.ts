import { httpTarget } from "./http.ts";
import { kafkaTarget } from "./kafka.ts";
import { natsTarget } from "./nats.ts";
import { nowhereTarget } from "./nowhere.ts";
import { redisStreamsTarget } from "./redis-streams.ts";
import type { OpenTarget } from "./target.ts";

export const targets: Readonly<Record<string, OpenTarget>> = {
  "redis-streams": redisStreamsTarget,
  kafka: kafkaTarget,
  nats: natsTarget,
  http: httpTarget,
  nowhere: nowhereTarget,
};
