import { transportConformance } from "../../testing/transports/suite.ts";
import { httpPlace } from "./test/place.ts";

transportConformance({ name: "http", open: () => httpPlace(), openFragile: () => httpPlace() });
