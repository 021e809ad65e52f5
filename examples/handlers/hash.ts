import { createHash } from "node:crypto";
import type { HandlerContext } from "../../src/index.ts";

// #region main
export default function hash({ input, progress }: HandlerContext<{ text: string; rounds: number }>): string {
  let digest = input.text;
  for (let round = 1; round <= input.rounds; round++) {
    digest = createHash("sha256").update(digest).digest("hex");
    if (round % 10_000 === 0) progress({ round });
  }
  return digest;
}
// #endregion
