import type { VNode } from "preact";
import { cut, piecesOf, visible } from "./visible.ts";

interface Props {
  readonly value: string;
  /** Longer ones are cut, with the whole on hover. */
  readonly most?: number;
  /** Whether line breaks and tabs stay what they are. */
  readonly keepsLines?: boolean;
}

const longestTitle = 2_000;

/** A string from outside: nothing in it is markup, nothing in it is unseen, and it turns the direction of nothing around it. */
export function Text({ value, most = 20_000, keepsLines = false }: Props): VNode {
  const shown = cut(value, most);
  const title = shown === value ? undefined : visible(cut(value, longestTitle));
  return (
    <bdi title={title}>
      {piecesOf(shown, keepsLines).map(({ text, isMark }, place) =>
        isMark ? (
          <span key={place} class="mark">
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </bdi>
  );
}
