// The dashboard in a Fastify app, in a scope of its own in which Fastify reads no bodies.
import fastify from "fastify";
import { toNodeListener } from "../../src/api/index.ts";
import { dashboard } from "./app.ts";

// #region serve
const listener = toNodeListener(dashboard);
export const server = fastify();
server.register((scope, _options, done) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  for (const path of ["/ops/escapement", "/ops/escapement/*"])
    scope.all(path, (request, reply) => {
      reply.hijack();
      void listener(request.raw, reply.raw);
    });
  done();
});
// #endregion
