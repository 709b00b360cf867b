// Appends events of clients to the store, for all append methods.

import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { markedForm, markHeader, type Mark } from '../../../contracts/event-form.ts';
import { hasCode } from '../../../foundation/error.ts';
import { toSequence } from '../../../store/position.ts';
import { withTenantSubject } from '../../../store/erasure.ts';
import { toIsoTime } from '../../../store/recorded-event.ts';
import {
  streamDeleted,
  versionConflict,
  type ExpectedRevision,
} from '../../../store/expected-revision.ts';
import type { StreamInfo } from '../../../store/event-store.ts';
import type { KurrentContext } from '../context.ts';
import { originOf } from '../events/event-origin.ts';
import { fromWire, type ForeignEvent } from '../events/from-wire.ts';
import type { KurrentIdentity } from '../kurrent-server.ts';

export interface ForeignAppend {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly ForeignEvent[];
  readonly identity: KurrentIdentity;
}

export interface Appended {
  /** −1: the stream has no events. */
  readonly revision: number;
  /** Without events: the position of the last event of the store. */
  readonly sequence: number;
}

type AppendContext = Pick<KurrentContext, 'accept' | 'store' | 'ownerOf' | 'clock'>;

export async function appendForeign(
  context: AppendContext,
  append: ForeignAppend,
): Promise<Appended> {
  const { stream, expected, events } = append;
  if (events.length === 0) {
    const revision = revisionAsExpected(append, await context.store.streamInfo(stream));
    return { revision, sequence: toSequence(await context.store.head()) };
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
  context: Omit<AppendContext, 'store'>,
  { stream, events, identity }: Omit<ForeignAppend, 'expected'>,
  opaque: boolean,
): Promise<DomainEventEnvelope[]> {
  const origin = originOf(stream, await context.ownerOf(stream));
  const now = toIsoTime(context.clock.now());
  const isAdmin = identity.scopes.includes('admin');
  return events.map((event) => {
    const envelope = withTenantSubject(fromWire(event, { origin, now, opaque }), identity.tenant);
    const { type, headers } = envelope;
    const mark = headers?.[markHeader] as Mark | undefined;
    const form = markedForm(envelope);
    const payload = form === undefined ? envelope.payload : form.payload;
    const sent = mark?.data === 'bytes' ? { stream, type } : { stream, type, payload };
    const accepted = context.accept?.(sent, isAdmin);
    // Bytes that no module has a schema for are stored as the client sent them.
    const isUnchanged = accepted === undefined || accepted === payload;
    if (isUnchanged) return envelope;
    const isInside = form?.format === 'envelope';
    const changed = isInside ? { ...(envelope.payload as object), payload: accepted } : accepted;
    return { ...envelope, payload: changed };
  });
}

/** An append without events only checks the expected revision. */
function revisionAsExpected(
  { stream, expected }: ForeignAppend,
  info: StreamInfo | undefined,
): number {
  const actual = info?.revision ?? -1;
  if (info?.deleted === 'tombstone' || (info?.deleted === 'soft' && expected === 'exists')) {
    throw streamDeleted(stream);
  }
  const fits =
    expected === 'any' ||
    (expected === 'exists' && info !== undefined) ||
    (expected === 'none' && (actual === -1 || info?.deleted === 'soft')) ||
    expected === actual;
  if (fits) return actual;
  throw versionConflict({ stream, expected }, actual);
}
