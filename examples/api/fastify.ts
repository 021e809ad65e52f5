// The API in a Fastify app, in a scope of its own in which Fastify reads no bodies.
import fastify from "fastify";
import { toNodeListener } from "../../src/api/index.ts";
import { api } from "./app.ts";

// #region serve
const listener = toNodeListener(api);
export const server = fastify();
server.register((scope, _options, done) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  scope.all("/escapement/*", (request, reply) => {
    reply.hijack();
    void listener(request.raw, reply.raw);
  });
  done();
});
// #endregion
