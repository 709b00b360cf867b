// A document as Redis keeps it: JSON in a string, or a hash with a field for each member.

import { MillraceError } from '../../foundation/error.ts';
import type { ModelKey } from '../../projections/read-model-store.ts';

/** JSON in a string; a hash whose fields are JSON; or one whose fields are texts but for those it names. */
export type DocumentShape = 'json' | 'hash' | { readonly jsonFields: readonly string[] };

export function shapeOf(
  { layout }: Pick<ModelKey, 'layout'>,
  usual: 'json' | 'hash',
): DocumentShape {
  return layout === undefined ? usual : { jsonFields: layout.jsonFields };
}

/** What the scripts call it. */
export function kindOf(shape: DocumentShape): 'json' | 'hash' {
  return shape === 'json' ? 'json' : 'hash';
}

/** What the script is given: never empty. */
export function toRedisText(shape: DocumentShape, document: string): string {
  if (shape === 'json') return document;
  const members = Object.entries(JSON.parse(document) as object);
  return JSON.stringify(members.flatMap(([name, value]) => [name, fieldText(shape, name, value)]));
}

function fieldText(shape: DocumentShape, name: string, value: unknown): string {
  if (!isText(shape, name)) return JSON.stringify(value);
  if (typeof value === 'string') return value;
  throw new MillraceError(
    'READ_MODEL_INVALID',
    `'${name}' is no text: name it as a field of JSON`,
    {
      details: { field: name },
    },
  );
}

function isText(shape: DocumentShape, name: string): boolean {
  return typeof shape === 'object' && !shape.jsonFields.includes(name);
}

/** As `loadScript` answers. */
export function fromRedisText(
  id: string,
  found: string | readonly string[] | null,
  shape: DocumentShape = 'hash',
): string {
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
    const [name = '', field = ''] = found.slice(at, at + 2);
    members.push(`${JSON.stringify(name)}:${isText(shape, name) ? JSON.stringify(field) : field}`);
  }
  return `{${members.join(',')}}`;
}
