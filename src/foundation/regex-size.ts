// How large a regular expression of RE2 becomes: a repeated part is copied as often as it may occur, so a short pattern can take
// seconds to compile. The size is estimated before that.

const token = /\\x\{[^}]*\}?|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|\{(\d+)(?:,(\d*))?\}|./gs;

/** At least the number of instructions of the compiled pattern. */
export function regexSize(pattern: string): number {
  const outer: number[] = [];
  // The last part, which a repetition copies, is included in the size.
  let [size, last] = [4, 0];
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (text === '(') {
      outer.push(size);
      [size, last] = [3, 0];
    } else if (text === ')') {
      last = size;
      size = (outer.pop() ?? 0) + last;
    } else if (least !== undefined) {
      last *= 2 * Math.max(1, Number(least), Number(most ?? 0));
      size += last;
    } else {
      last = 2;
      size += last;
    }
  }
  return outer.reduce((sum, each) => sum + each, size);
}
