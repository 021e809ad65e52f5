/** Whether tests run in their long form, as they do in CI: the short one shows the same on fewer seeds and days. */
export const isFull = process.env["ESCAPEMENT_TESTS"] === "full";
