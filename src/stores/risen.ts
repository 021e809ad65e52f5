import { maxCount } from "../state.ts";

/** The highest figure that a table takes: what a number of this language holds exactly. */
const maxFigure = Number.MAX_SAFE_INTEGER;

/**
 * SQL for a count that rises by one, or a figure that rises by another, up to the highest that its table takes. Something
 * else may have set it there, and a refused write would hold up all that is written with it.
 *
 * @param least the dialect's function for the smaller of two numbers.
 */
export function risen(least: "min" | "least", count: string): string {
  return `${least}(${count}, ${maxCount - 1}) + 1`;
}

export function addedUp(least: "min" | "least", figure: string, more: string): string {
  return `${least}(${figure} + ${more}, ${maxFigure})`;
}
