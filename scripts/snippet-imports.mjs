/** An import at the top of a file: the default, the names in braces, the module. */
const statement =
  /^import (type )?(?:([A-Za-z_$][\w$]*)(?:, )?)?(?:\{([^}]*)\})?(?:\* as ([\w$]+))? from ("[^"]+");$/gm;

/** The imports of a file that a piece of it needs, so that a reader can paste the piece; nothing where it brings its own. */
export function importsFor(code, piece) {
  if (/^import /m.test(piece)) return "";
  const used = piece.replaceAll(/\/\/.*$|"[^"\n]*"/gm, "");
  const isUsed = (name) => new RegExp(`(?<![\\w$.])${name.replaceAll("$", "\\$")}(?![\\w$])`).test(used);
  const lines = [...code.matchAll(statement)].flatMap(([, type = "", one, list, space, from]) => {
    const names = (list ?? "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && isUsed(name.replace(/^type /, "").replace(/^.* as /, "")));
    const parts = [
      ...(one !== undefined && isUsed(one) ? [one] : []),
      ...(names.length > 0 ? [`{ ${names.join(", ")} }`] : []),
      ...(space !== undefined && isUsed(space) ? [`* as ${space}`] : []),
    ];
    const line = `import ${type}${parts.join(", ")} from ${from};`;
    return parts.length === 0 ? [] : [line.replace(/^import \{ type ([\w$]+) \}/, "import type { $1 }")];
  });
  return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`;
}
