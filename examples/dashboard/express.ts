// The dashboard in an Express app. Mount it before what parses bodies: it reads them itself.
import express from "express";
import { toNodeListener } from "../../src/api/index.ts";
import { dashboard } from "./app.ts";

// #region serve
const listener = toNodeListener(dashboard);
export const server = express();
server.all("/ops/escapement{/*path}", (request, response) => void listener(request, response));
server.use(express.json());
// #endregion
