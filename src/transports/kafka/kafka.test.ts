import { describe } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { transportConformance } from "../../testing/transports/suite.ts";
import { fragileKafka, kafkaPlace } from "./test/place.ts";

const server = await testbed.kafka();

describe("Kafka", { skip: server.skip }, () => {
  transportConformance({
    name: "kafka",
    open: async () => kafkaPlace(server.url),
    openFragile: async () => fragileKafka(await testbed.kafka({ private: true })),
  });
});
