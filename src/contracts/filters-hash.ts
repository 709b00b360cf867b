// Hashes of JSON that ignore the order of keys: equal filters share one cached list, equal payloads are one command.

import { createHash } from 'node:crypto';
import { MillraceError } from '../foundation/error.ts';

/** As deep as the JSON of a request may be. */
const depthMax = 200;

/**
 * Hashes filters independently of key order; `undefined` members are ignored, array order counts. With
 * 128 bits, two different queries of a tenant do not share a cache by collision.
 *
 * @example
 * import { filtersHash } from 'millrace/contracts';
 *
 * console.log(filtersHash({ status: 'open', page: 1 }) === filtersHash({ page: 1, status: 'open' })); // true
 */
export function filtersHash(filters: unknown): string {
  return jsonHash(filters);
}

/** The hash of any JSON value, independent of key order. */
export function jsonHash(value: unknown): string {
  return createHash('sha256')
    .update(canonical(value, '', 0))
    .digest('hex')
    .slice(0, 32);
}

function canonical(value: unknown, path: string, depth: number): string {
  if (depth > depthMax) throw notJson(path, `is nested deeper than ${depthMax}`);
  if (value === null || typeof value === 'boolean' || typeof value === 'string') {
    return JSON.stringify(value);
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw notJson(path, 'is not a finite number');
    return JSON.stringify(value);
  }
  if (value instanceof Date) return canonical(value.toISOString(), path, depth);
  if (Array.isArray(value)) {
    return `[${value.map((item, index) => canonical(item, `${path}/${index}`, depth + 1)).join(',')}]`;
  }
  if (typeof value === 'object') {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([key, member]) =>
          `${JSON.stringify(key)}:${canonical(member, `${path}/${key}`, depth + 1)}`,
      );
    return `{${members.join(',')}}`;
  }
  throw notJson(path, `is a ${typeof value}`);
}

function notJson(path: string, reason: string): MillraceError {
  return new MillraceError(
    'PAYLOAD_NOT_JSON',
    `the value at '${path === '' ? '/' : path}' ${reason}`,
    { details: { path, reason } },
  );
}
