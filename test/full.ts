/** Whether tests run in their long form, as they do in CI: the short one shows the same on fewer seeds and days. */
export const isFull = process.env["ESCAPEMENT_TESTS"] === "full";

/** The tests of the store contract that run on a second way to a store, where all of them run on the first. */
export const everyNthOnVariants = isFull ? 1 : 4;
