export type { ApiOptions } from "../api/index.ts";
export { createDashboard } from "./create-dashboard.ts";
