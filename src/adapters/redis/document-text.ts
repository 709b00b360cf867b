// A document as Redis keeps it: JSON in a string, or a hash with a field for each member.

import { MillraceError } from '../../foundation/error.ts';

export type DocumentShape = 'json' | 'hash';

/** What the script is given: never empty. */
export function toRedisText(shape: DocumentShape, document: string): string {
  if (shape === 'json') return document;
  const members = Object.entries(JSON.parse(document) as object);
  return JSON.stringify(members.flatMap(([name, value]) => [name, JSON.stringify(value)]));
}

/** As `loadScript` answers. */
export function fromRedisText(id: string, found: string | readonly string[] | null): string {
  if (typeof found === 'string') return found;
  if (found === null) {
    throw new MillraceError(
      'STORE_CORRUPT',
      `the document '${id}' is gone although nothing removed it: Redis needs maxmemory-policy noeviction`,
      { details: { id } },
    );
  }
  const members: string[] = [];
  for (let at = 0; at < found.length; at += 2) {
    members.push(`${JSON.stringify(found[at])}:${found[at + 1]}`);
  }
  return `{${members.join(',')}}`;
}
