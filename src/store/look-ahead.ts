// Look-aheads directly after a literal beginning, such as `^(?!\$)` and `^order-(?!test)`, which filters of EventStoreDB
// clients often have. They are separate patterns, so each still matches in linear time.

/** All patterns must match, and none of `excluded`. */
export interface SplitPattern {
  readonly patterns: readonly string[];
  readonly excluded: readonly string[];
}

/** `^`, then literal characters up to the first look-ahead. Letters after a backslash have another meaning. */
const beginning = /^\^(?:[^\\^$.|?*+()[\]{}]|\\[^A-Za-z0-9])*(?=\(\?[=!])/;
const token = /\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|./gs;

export function splitLookAheads(pattern: string): SplitPattern {
  const [start] = beginning.exec(pattern) ?? [];
  if (start === undefined) return { patterns: [pattern], excluded: [] };
  const patterns: string[] = [];
  const excluded: string[] = [];
  let rest = pattern.slice(start.length);
  for (let kind = /^\(\?[=!]/.exec(rest); kind !== null; kind = /^\(\?[=!]/.exec(rest)) {
    const end = endOfGroup(rest);
    // A repeated look-ahead, or one that does not end: RE2 rejects the pattern.
    if (end === undefined || /^[*+?{]/.test(rest.slice(end)))
      return { patterns: [pattern], excluded: [] };
    const part = `${start}(?:${rest.slice(3, end - 1)})`;
    (kind[0] === '(?=' ? patterns : excluded).push(part);
    rest = rest.slice(end);
  }
  // The look-ahead belongs to the first alternative only.
  if (hasAlternatives(rest)) return { patterns: [pattern], excluded: [] };
  return { patterns: [...patterns, `${start}${rest}`], excluded };
}

/** Where the group that begins the text ends. */
function endOfGroup(text: string): number | undefined {
  let depth = 0;
  for (const { 0: part, index } of text.matchAll(token)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (depth === 0) return index + 1;
  }
  return undefined;
}

function hasAlternatives(text: string): boolean {
  let depth = 0;
  for (const [part] of text.matchAll(token)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (part === '|' && depth === 0) return true;
  }
  return false;
}
