// How Redis stores a document (JSON in a string, or a hash with a field for each member) and its fence.

import { MillraceError } from '../../../foundation/error.ts';
import type {
  DocumentEntries,
  DocumentWrite,
  ModelKey,
} from '../../../projections/read-model-store.ts';

/** JSON in a string, a hash of JSON fields, or a hash of plain string fields except for `jsonFields`. */
export type DocumentShape = 'json' | 'hash' | { readonly jsonFields: readonly string[] };

export function shapeOf(
  { layout }: Pick<ModelKey, 'layout'>,
  defaultShape: 'json' | 'hash',
): DocumentShape {
  return layout === undefined ? defaultShape : { jsonFields: layout.jsonFields };
}

/** The document kind that scripts expect. */
export function kindOf(shape: DocumentShape): 'json' | 'hash' {
  return shape === 'json' ? 'json' : 'hash';
}

/** The content string that `write.lua` expects; never empty. */
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
    `field '${name}' is not a string: list it in jsonFields`,
    {
      details: { field: name },
    },
  );
}

function isText(shape: DocumentShape, name: string): boolean {
  return typeof shape === 'object' && !shape.jsonFields.includes(name);
}

/** Converts the document in a reply of `load.lua` to JSON. */
export function fromRedisText(
  id: string,
  found: string | readonly string[] | null,
  shape: DocumentShape = 'hash',
): string {
  if (typeof found === 'string') return found;
  if (found === null) {
    throw new MillraceError(
      'STORE_CORRUPT',
      `document '${id}' is missing but was not removed: set maxmemory-policy noeviction in Redis`,
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

/**
 * The fence of a document: the event that it came from, and all of its entries, so that the next write can remove
 * outdated entries. All values are strings, because Lua prints numbers with fewer digits than they have.
 */
interface FenceText {
  /** Stream of the event. */
  readonly t: string;
  /** Revision of the event. */
  readonly r: string;
  /** Whether the document exists (1) or was removed (0). */
  readonly d: '1' | '0';
  /** The value of the document in each index. */
  readonly i: Readonly<Record<string, string>>;
  /** The sets that contain the document. */
  readonly s: readonly string[];
  /** The score of the document in each range (sorted set). */
  readonly z: Readonly<Record<string, string>>;
}

export interface DocumentFence {
  readonly stream: string;
  readonly revision: number;
  readonly exists: boolean;
  readonly entries: DocumentEntries;
}

export function encodeFence(write: DocumentWrite): string {
  const { stream, revision, document, entries, isErasure } = write;
  return JSON.stringify({
    t: stream,
    r: String(revision),
    d: document === null ? '0' : '1',
    i: entries.indexes,
    s: entries.sets,
    ...(isErasure === true ? { e: '1' } : {}),
    z: Object.fromEntries(Object.entries(entries.ranges).map(([name, at]) => [name, String(at)])),
  } satisfies FenceText);
}

export function decodeFence(text: string): DocumentFence {
  const { t, r, d, i, s, z } = JSON.parse(text) as FenceText;
  const scores = Object.entries(z).map(([name, at]) => [name, Number(at)] as const);
  return {
    stream: t,
    revision: Number(r),
    exists: d === '1',
    entries: { indexes: i, sets: s, ranges: Object.fromEntries(scores) },
  };
}
