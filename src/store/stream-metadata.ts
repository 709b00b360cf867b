// Stream metadata is stored as an event in the stream `$$<stream>`, as in EventStoreDB.

import { MillraceError } from '../foundation/error.ts';
import { softDeleted } from './expected-revision.ts';
import type { StreamMetadata } from './event-store.ts';
import type { Retention } from './store-engine.ts';

export const metadataType = '$metadata';
export const tombstoneType = '$streamDeleted';

/** EventStoreDB's `truncateBefore` of a soft delete; too large for an exact JavaScript number. */
const eventStoreSoftDeleted = 9_223_372_036_854_775_807n;

export function metadataStream(stream: string): string {
  return `$$${stream}`;
}

/** The stream that this metadata stream belongs to. */
export function streamOfMetadata(stream: string): string | undefined {
  return stream.startsWith('$$') ? stream.slice(2) : undefined;
}

/** Rejects invalid limits, and limits that would hide all events by accident. */
export function checkMetadata(stream: string, metadata: StreamMetadata): void {
  const { truncateBefore = 0, maxCount = 1, maxAgeSeconds = 1 } = metadata;
  const bad =
    Number.isSafeInteger(truncateBefore) && truncateBefore >= 0
      ? Number.isSafeInteger(maxCount) && maxCount >= 1
        ? Number.isSafeInteger(maxAgeSeconds) && maxAgeSeconds >= 1
          ? undefined
          : 'maxAgeSeconds must be a positive integer'
        : 'maxCount must be a positive integer'
      : 'truncateBefore must be a non-negative integer';
  if (bad === undefined) return;
  throw new MillraceError('APPEND_INVALID', `metadata of '${stream}': ${bad}`, {
    details: { stream, reason: bad },
  });
}

export function toMetadataPayload(metadata: StreamMetadata): Record<string, unknown> {
  return {
    ...metadata.custom,
    ...(metadata.truncateBefore === undefined ? {} : { $tb: metadata.truncateBefore }),
    ...(metadata.maxCount === undefined ? {} : { $maxCount: metadata.maxCount }),
    ...(metadata.maxAgeSeconds === undefined ? {} : { $maxAge: metadata.maxAgeSeconds }),
  };
}

export function fromMetadataPayload(payload: unknown): StreamMetadata {
  if (typeof payload !== 'object' || payload === null) return {};
  const { $tb, $maxCount, $maxAge, ...custom } = payload as Record<string, unknown>;
  return {
    ...member('truncateBefore', $tb, 0),
    // As in EventStoreDB, a count or an age of 0 is no limit.
    ...member('maxCount', $maxCount, 1),
    ...member('maxAgeSeconds', $maxAge, 1),
    ...(Object.keys(custom).length === 0 ? {} : { custom }),
  };
}

export function toRetention(metadata: StreamMetadata): Retention {
  const { custom: _custom, ...retention } = metadata;
  return retention;
}

/** EventStoreDB's soft-delete number becomes ours. */
function member(name: string, value: unknown, min: number): Record<string, number> {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min) return {};
  return { [name]: value >= Number(eventStoreSoftDeleted) ? softDeleted : value };
}
