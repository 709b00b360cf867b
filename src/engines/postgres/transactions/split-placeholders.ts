// Splits a statement at its parameters `$1`, `$2`, … for libraries with another parameter syntax. Dollar signs
// inside strings, quoted names and comments are not parameters.

export interface SplitStatement {
  /** The SQL between the parameters: one string more than parameters. */
  readonly texts: readonly string[];
  /** The index of the value of each parameter, from 0. */
  readonly indexes: readonly number[];
}

/** Comments, strings, names and dollar quotes, which are skipped, then a parameter. Only `e'…'` has backslash escapes. */
const token =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\be'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w$])\$([a-z_]\w*)?\$[\s\S]*?\$\1\$|(?<![\w$])\$(\d+)/gi;

export function splitPlaceholders(sql: string): SplitStatement {
  const texts: string[] = [];
  const indexes: number[] = [];
  let from = 0;
  for (const match of sql.matchAll(token)) {
    const number = match[2];
    if (number === undefined) continue;
    texts.push(sql.slice(from, match.index));
    indexes.push(Number(number) - 1);
    from = match.index + match[0].length;
  }
  return { texts: [...texts, sql.slice(from)], indexes };
}
