// The API in a server of node:http.
import { createServer } from "node:http";
import { toNodeListener } from "../../src/api/index.ts";
import { api } from "./app.ts";

// #region serve
const listener = toNodeListener(api);
export const server = createServer((request, response) => void listener(request, response));
// #endregion
