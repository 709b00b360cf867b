// A statement with `$1`, `$2`, … as what stands between its parameters, for libraries that write
// parameters in another way. Dollars inside strings, quoted names and comments are none.

export interface SplitStatement {
  /** One more than there are parameters. */
  readonly texts: readonly string[];
  /** Which value each parameter is, from 0. */
  readonly indexes: readonly number[];
}

/** What is left alone, whole, then a parameter; `e'…'` knows backslashes, other strings do not. */
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
