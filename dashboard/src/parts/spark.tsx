import type { VNode } from "preact";

interface Props {
  readonly counts: readonly number[];
  /** What it shows, for those who do not see it. */
  readonly label: string;
  readonly tone: "good" | "bad" | "lost";
}

const height = 20;
const step = 5;

/** Small bars, one for each part of a span of time. */
export function Spark({ counts, label, tone }: Props): VNode {
  const most = Math.max(1, ...counts);
  return (
    <svg
      class={`spark ${tone}`}
      role="img"
      aria-label={label}
      width={counts.length * step}
      height={height}
      preserveAspectRatio="none"
      viewBox={`0 0 ${counts.length * step} ${height}`}
    >
      <title>{label}</title>
      {counts.map((many, place) => {
        const tall = many === 0 ? 1 : Math.max(3, Math.round((many / most) * height));
        return (
          <rect
            key={place}
            class={many === 0 ? "none" : ""}
            x={place * step}
            y={height - tall}
            width={step - 1}
            height={tall}
          />
        );
      })}
    </svg>
  );
}
