// Stream metadata travels as an event of its own stream, `$$<stream>`, as in EventStoreDB.

import { MillraceError } from '../foundation/error.ts';
import { softDeleted } from './expected-revision.ts';
import type { StreamMetadata } from './event-store.ts';
import type { Retention } from './store-engine.ts';

export const metadataType = '$metadata';
export const tombstoneType = '$streamDeleted';

/** EventStoreDB's own number for "everything", which JavaScript cannot hold exactly. */
const softDeletedText = 9_223_372_036_854_775_807n;

export function metadataStream(stream: string): string {
  return `$$${stream}`;
}

/** The stream whose metadata this stream holds. */
export function streamOfMetadata(stream: string): string | undefined {
  return stream.startsWith('$$') ? stream.slice(2) : undefined;
}

/** Refuses bounds that would mean nothing, or hide everything by accident. */
export function checkMetadata(stream: string, metadata: StreamMetadata): void {
  const { truncateBefore = 0, maxCount = 1, maxAgeSeconds = 1 } = metadata;
  const bad =
    Number.isSafeInteger(truncateBefore) && truncateBefore >= 0
      ? Number.isSafeInteger(maxCount) && maxCount >= 1
        ? Number.isSafeInteger(maxAgeSeconds) && maxAgeSeconds >= 1
          ? undefined
          : 'maxAgeSeconds must be a whole number from 1'
        : 'maxCount must be a whole number from 1'
      : 'truncateBefore must be a whole number from 0';
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
    ...member('truncateBefore', $tb),
    ...member('maxCount', $maxCount),
    ...member('maxAgeSeconds', $maxAge),
    ...(Object.keys(custom).length === 0 ? {} : { custom }),
  };
}

export function toRetention(metadata: StreamMetadata): Retention {
  const { custom: _custom, ...retention } = metadata;
  return retention;
}

/** A number that stands for "all", however it was written down, is our own "all". */
function member(name: string, value: unknown): Record<string, number> {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) return {};
  return { [name]: value >= Number(softDeletedText) ? softDeleted : value };
}
