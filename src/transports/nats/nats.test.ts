import { describe } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { transportConformance } from "../../testing/transports/suite.ts";
import { fragileNats, natsPlace } from "./test/place.ts";

const server = await testbed.nats();

describe("NATS JetStream, three nodes", { skip: server.skip }, () => {
  transportConformance({
    name: "nats",
    open: async () => natsPlace(server.url),
    openFragile: async () => fragileNats(await testbed.nats({ private: true })),
  });
});
