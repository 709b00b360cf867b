// The metadata stream of a stream, as clients know it from KurrentDB, where the stream's own state
// says more than its last metadata event.

import { MillraceError } from '../../../foundation/error.ts';
import { softDeleted } from '../../../store/expected-revision.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { metadataType, streamOfMetadata } from '../../../store/stream-metadata.ts';
import type { KurrentContext } from '../context.ts';
import { markHeader } from '../events/from-wire.ts';

/** How the metadata events of this stream are shown; undefined: as they are. */
export async function aboutMetadata(
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
 * An append that brings a deleted stream back changes its retention, but writes no metadata event as
 * KurrentDB does: the last one would go on saying that everything is hidden.
 */
function revived(event: RecordedEvent, truncateBefore: number): RecordedEvent {
  const payload = event.payload as Readonly<Record<string, unknown>> | null;
  const hidden = Number(payload?.['$tb'] ?? 0);
  if (event.type !== metadataType || hidden < softDeleted) return event;
  const { [markHeader]: _mark, ...headers } = event.headers ?? {};
  return { ...event, headers, payload: { ...payload, $tb: truncateBefore } };
}
