import { parse } from "yaml";

/** Aliases that repeat what has aliases in it grow without bound: a few lines would fill the memory. */
const maxAliasCount = 100;
const timestamp = "tag:yaml.org,2002:timestamp";

/** A time stays the string that was written: YAML 1.1 would make a `Date` of it, with 31 February as 3 March. */
export function readYaml(text: string): unknown {
  return parse(text, {
    maxAliasCount,
    logLevel: "error",
    resolveKnownTags: false,
    customTags: (tags) => tags.filter((tag) => typeof tag === "string" || tag.tag !== timestamp),
  });
}
