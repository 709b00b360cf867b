// Lines out of a stream of bytes or text, as many as a piece brings; one line is all it holds back.

import { lineInvalid } from './export-format.ts';

/** Far above the largest event: a file without line breaks must not fill the memory. */
const lineCharsMax = 256 * 1_048_576;

export interface Lines {
  readonly lines: readonly string[];
  /** One line, which no line break ends: the file's last, and maybe only the beginning of it. */
  readonly unended?: true;
}

export async function* readLines(
  source: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<Lines, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  let count = 0;
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw lineInvalid(count + 1, 'or one of the next is not UTF-8');
    }
  };
  for await (const piece of source) {
    const text = typeof piece === 'string' ? piece : decode(piece);
    if (!text.includes('\n')) {
      rest += text;
      if (rest.length > lineCharsMax) throw lineInvalid(count + 1, 'is too long');
      continue;
    }
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    count += lines.length;
    yield { lines };
  }
  rest += decode();
  if (rest !== '') yield { lines: [rest], unended: true };
}
