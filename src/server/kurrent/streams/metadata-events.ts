// The metadata stream of a stream as in KurrentDB, where the state of the stream overrides its last metadata event.

import { markHeader } from '../../../contracts/event-form.ts';
import { softDeleted, streamDeleted } from '../../../store/expected-revision.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { metadataType, streamOfMetadata } from '../../../store/stream-metadata.ts';
import type { KurrentContext } from '../context.ts';

export interface MetadataView {
  readonly stream: string;
  /** The revision of the last metadata event, the only one that clients see. */
  readonly last: number;
  readonly show: (event: RecordedEvent) => RecordedEvent;
}

/** Undefined: the stream is not a metadata stream. */
export async function metadataView(
  { store }: Pick<KurrentContext, 'store'>,
  stream: string,
): Promise<MetadataView | undefined> {
  const of = streamOfMetadata(stream);
  if (of === undefined) return undefined;
  const [info, own] = await Promise.all([store.streamInfo(of), store.streamInfo(stream)]);
  if (info?.deleted === 'tombstone') throw streamDeleted(of);
  const { truncateBefore } = info?.metadata ?? {};
  const isRevived = info?.deleted === 'no' && truncateBefore !== undefined;
  return {
    stream,
    last: own?.revision ?? -1,
    show: (event) => (isRevived ? revived(event, truncateBefore) : event),
  };
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
