// Appends events of clients to the store, for all append methods.

import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { toSequence } from '../../../store/position.ts';
import { withTenantSubject } from '../../../store/tenant-subject.ts';
import { toIsoTime } from '../../../store/recorded-event.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import type { StreamInfo } from '../../../store/event-store.ts';
import type { KurrentContext } from '../context.ts';
import { originOf } from '../events/event-origin.ts';
import { fromWire, type ForeignEvent } from '../events/from-wire.ts';

export interface ForeignAppend {
  /** The tenant that the caller is bound to. Absent: all tenants. */
  readonly tenant?: string | undefined;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly ForeignEvent[];
}

export interface Appended {
  /** −1: the stream has no events. */
  readonly revision: number;
  /** Absent: nothing was written. */
  readonly sequence?: number | undefined;
}

type AppendContext = Pick<KurrentContext, 'store' | 'ownerOf' | 'clock'>;

export async function appendForeign(
  context: AppendContext,
  append: ForeignAppend,
): Promise<Appended> {
  const { stream, expected, events } = append;
  if (events.length === 0) {
    return { revision: revisionAsExpected(append, await context.store.streamInfo(stream)) };
  }
  const write = async (opaque: boolean): Promise<Appended> => {
    const envelopes = await toEnvelopes(context, append, opaque);
    const { revision, position } = await context.store.append(stream, envelopes, { expected });
    return { revision, sequence: toSequence(position) };
  };
  return withOpaqueRetry(write);
}

/** JSON that the store rejects (deep nesting, huge numbers) is stored as bytes. */
export async function withOpaqueRetry<T>(write: (opaque: boolean) => Promise<T>): Promise<T> {
  try {
    return await write(false);
  } catch (error) {
    if (!hasCode(error, 'PAYLOAD_NOT_JSON')) throw error;
    return write(true);
  }
}

export async function toEnvelopes(
  context: Pick<KurrentContext, 'ownerOf' | 'clock'>,
  { stream, events, tenant }: Pick<ForeignAppend, 'events' | 'stream' | 'tenant'>,
  opaque: boolean,
): Promise<DomainEventEnvelope[]> {
  const origin = originOf(stream, await context.ownerOf(stream));
  const now = toIsoTime(context.clock.now());
  return events.map((event) => withTenantSubject(fromWire(event, { origin, now, opaque }), tenant));
}

/** An append without events only checks the expected revision. */
function revisionAsExpected(
  { stream, expected }: ForeignAppend,
  info: StreamInfo | undefined,
): number {
  const actual = info?.revision ?? -1;
  if (info?.deleted === 'tombstone' || (info?.deleted === 'soft' && expected === 'exists')) {
    throw new MillraceError('STREAM_DELETED', `stream '${stream}' was deleted`, {
      details: { stream },
    });
  }
  const fits =
    expected === 'any' ||
    (expected === 'exists' && info !== undefined) ||
    (expected === 'none' && (actual === -1 || info?.deleted === 'soft')) ||
    expected === actual;
  if (fits) return actual;
  throw new MillraceError(
    'VERSION_CONFLICT',
    `stream '${stream}' was expected at ${expected}, but is at ${actual}`,
    { details: { stream, expected, actual } },
  );
}
