// Enqueues from a process that cannot reach the store.
import { createClient } from "../../src/api-client/index.ts";

// #region client
export async function greet(url: string, token: string, name: string): Promise<unknown> {
  const client = createClient({ url, token });
  const { id } = await client.enqueue({ name: "greet", input: { name } });
  return client.result(id);
}
// #endregion
