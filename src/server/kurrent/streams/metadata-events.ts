// The metadata stream of a stream as in KurrentDB, where the state of the stream overrides its last metadata event.

import { MillraceError } from '../../../foundation/error.ts';
import { softDeleted } from '../../../store/expected-revision.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { metadataType, streamOfMetadata } from '../../../store/stream-metadata.ts';
import type { KurrentContext } from '../context.ts';
import { markHeader } from '../events/from-wire.ts';

/** The conversion of the metadata events of this stream; undefined: unchanged. */
export async function metadataView(
  { store }: Pick<KurrentContext, 'store'>,
  stream: string,
): Promise<((event: RecordedEvent) => RecordedEvent) | undefined> {
  const of = streamOfMetadata(stream);
  if (of === undefined) return undefined;
  const info = await store.streamInfo(of);
  if (info?.deleted === 'tombstone') {
    throw new MillraceError('STREAM_DELETED', `stream '${of}' was deleted`, {
      details: { stream },
    });
  }
  const { truncateBefore } = info?.metadata ?? {};
  if (info?.deleted !== 'no' || truncateBefore === undefined) return undefined;
  const last = (await store.streamInfo(stream))?.revision;
  return (event) => (event.revision === last ? revived(event, truncateBefore) : event);
}

/**
 * An append to a soft-deleted stream restores it. KurrentDB then writes a metadata event; our stores do not, so the last
 * metadata event would still hide all events.
 */
function revived(event: RecordedEvent, truncateBefore: number): RecordedEvent {
  const payload = event.payload as Readonly<Record<string, unknown>> | null;
  const hidden = Number(payload?.['$tb'] ?? 0);
  if (event.type !== metadataType || hidden < softDeleted) return event;
  const { [markHeader]: _mark, ...headers } = event.headers ?? {};
  return { ...event, headers, payload: { ...payload, $tb: truncateBefore } };
}
