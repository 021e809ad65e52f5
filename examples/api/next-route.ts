// The API in Next: app/escapement/[...path]/route.ts
import { api } from "./app.ts";

// #region serve
export const dynamic = "force-dynamic";
export { api as DELETE, api as GET, api as PATCH, api as POST, api as PUT };
// #endregion
