// What messages are searched by: their words, without regard to case.

import { createHash } from 'node:crypto';

/** Of a message, the first so many different words can be searched for. */
const wordsMax = 200;
const wordCharsMax = 40;
const word = /[\p{L}\p{M}\p{N}_]+/gu;

/** Each once, in the order of the text. */
export function wordsOf(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [each] of text.normalize('NFKC').toLowerCase().matchAll(word)) {
    found.add(each.slice(0, wordCharsMax));
    if (found.size === wordsMax) break;
  }
  return [...found];
}

/** Of the messages of a chat that hold a word. A hash: keys are seen by others than the chat is. */
export function wordGroup(chatId: string, each: string): string {
  return createHash('sha256').update(`${chatId} ${each}`).digest('base64url').slice(0, 22);
}
