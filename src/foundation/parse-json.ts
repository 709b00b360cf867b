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
