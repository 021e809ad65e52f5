/** The URL of a module beside the calling one, by its name without an ending: `.ts` when run from source, `.js` when built. */
export function siblingModule(from: string, name: string): URL {
  return new URL(`./${name}${from.slice(from.lastIndexOf("."))}`, from);
}
