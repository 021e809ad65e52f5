/** How much is done, from 0 to 1: a share, a percentage, or so many of so many. Null for progress of another form. */
export function shareOf(progress: unknown): number | null {
  if (typeof progress === "number") return within(progress <= 1 ? progress : progress / 100);
  if (typeof progress !== "object" || progress === null) return null;
  const { percent, done, total } = progress as Readonly<Record<string, unknown>>;
  if (typeof percent === "number") return within(percent / 100);
  return typeof done === "number" && typeof total === "number" && total > 0 ? within(done / total) : null;
}

function within(share: number): number | null {
  return share >= 0 && share <= 1 ? share : null;
}
