// Parses JSON that others sent. Schemas, comparisons and `JSON.stringify` walk values recursively, so a deeply nested value would
// exhaust the stack.

/** More than an event or a job with the deepest payload has. */
export const jsonDepthMax = 200;

/** Throws a `SyntaxError` for invalid JSON and a `RangeError` for JSON that is nested too deeply. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) {
    throw new RangeError(`nested too deeply: the limit is ${jsonDepthMax} levels`);
  }
  return JSON.parse(text) as unknown;
}

/** Like `JSON.stringify`, for values that may contain stored JSON: its depth does not matter. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // The stack was exhausted.
    if (!(error instanceof RangeError)) throw error;
  }
  const parts: string[] = [];
  const todo: ({ readonly value: unknown } | { readonly text: string })[] = [{ value }];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const each = 'value' in next ? next.value : undefined;
    if ('text' in next) parts.push(next.text);
    else if (typeof each !== 'object' || each === null || isWrittenBySelf(each)) {
      parts.push(JSON.stringify(each) ?? 'null');
    } else {
      const isList = Array.isArray(each);
      const members = isList
        ? each.map((item: unknown) => ['', item] as const)
        : Object.entries(each).filter(([, member]) => member !== undefined);
      parts.push(isList ? '[' : '{');
      todo.push({ text: isList ? ']' : '}' });
      for (const [at, [name, member]] of [...members.entries()].toReversed()) {
        const label = isList ? '' : `${JSON.stringify(name)}:`;
        todo.push({ value: member }, { text: `${at === 0 ? '' : ','}${label}` });
      }
    }
  }
  return parts.join('');
}

/** Such as a date. A member of JSON may have this name, too. */
function isWrittenBySelf(value: object): boolean {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

/** Parses JSON that Millrace stored. Undefined: the stored text was damaged. */
export function parseStored(json: unknown): unknown {
  try {
    return JSON.parse(String(json));
  } catch {
    return undefined;
  }
}

function isTooDeep(text: string): boolean {
  // Each level needs an opening and a closing bracket.
  if (text.length <= 2 * jsonDepthMax) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === openList || code === openObject) {
      depth += 1;
      if (depth > jsonDepthMax) return true;
    } else if (code === closeList || code === closeObject) depth -= 1;
  }
  return false;
}

const [quote, backslash] = [0x22, 0x5c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  return text.length;
}
