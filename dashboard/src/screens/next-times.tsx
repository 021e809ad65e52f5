import type { VNode } from "preact";
import type { RulePreview } from "../api/answers.ts";
import { exact, inZone } from "../format.ts";
import { Problem } from "../parts/problem.tsx";
import { Time } from "../parts/time.tsx";

interface Props {
  readonly preview: RulePreview | Error | null;
  readonly timezone: string;
}

/** What a rule means, and its next times on the clocks of its zone, with a note where those change. */
export function NextTimes({ preview, timezone }: Props): VNode {
  if (preview === null) return <p class="soft small">…</p>;
  if (preview instanceof Error) return <Problem error={preview} />;
  return (
    <>
      {preview.text !== null && (
        <p class="small">
          Fires {preview.text}, {timezone}.
        </p>
      )}
      {preview.times.length === 0 && <p>It never fires again.</p>}
      <ol class="times small">
        {preview.times.map(({ at, note }) => (
          <li key={at}>
            <time dateTime={at} title={exact(at)}>
              {inZone(at, timezone)}
            </time>
            <span class="soft">
              <Time at={at} />
            </span>
            {note !== null && <span class="note">⚠ {note}</span>}
          </li>
        ))}
      </ol>
    </>
  );
}
