import { silentLogger } from "../../log.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { memory } from "./index.ts";

storeConformance({
  name: "memory",
  async open() {
    const clock = new VirtualClock();
    const shared = memory();
    return {
      open: (namespace = "conformance") => shared.open({ namespace, clock, log: silentLogger }),
      advance: (ms) => clock.advance(ms),
      close: async () => undefined,
    };
  },
});
