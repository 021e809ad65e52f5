const levels = [..."▁▂▃▄▅▆▇█"];

/** The latest figures as a line of bars, as high as the highest of them; nothing is lower than something. */
export function sparkline(figures: readonly number[], width: number): string {
  const shown = figures.slice(-width);
  const highest = Math.max(...shown, 0);
  const bars = shown.map((figure) => {
    if (figure <= 0) return levels[0];
    return levels[Math.max(1, Math.round((figure / highest) * (levels.length - 1)))];
  });
  return bars.join("").padStart(width);
}
