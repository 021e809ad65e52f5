/**
 * The files of the page, by their path. Only the sources build the page here: in the package, the build has put the texts themselves in the place
 * of this module.
 */
const { buildPage } = await import(new URL("../../dashboard/build.mjs", import.meta.url).href);

export const pageFiles: Readonly<Record<string, string>> = await buildPage();
