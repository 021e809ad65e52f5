// The receiver of the HTTP target: answers each request, and tells its parent what came to a path.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { idHeader } from "./target.ts";

const got = new Map<string, string[]>();

const server = createServer((request, response) => {
  request.resume().once("end", () => {
    const path = request.url ?? "";
    const ids = got.get(path) ?? [];
    ids.push(String(request.headers[idHeader]));
    got.set(path, ids);
    response.writeHead(204).end();
  });
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));

process.on("message", (path: string) => {
  process.send?.(got.get(path) ?? []);
  got.delete(path);
});
process.on("disconnect", () => process.exit());
