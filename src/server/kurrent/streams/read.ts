// Streams/Read: bounded reads, page by page; `subscribe.ts` has live reads.

import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { CallInfo, Send } from '../calls.ts';
import { hidesFrom, type KurrentContext } from '../context.ts';
import { toWireEvent } from '../events/to-wire.ts';
import type { WireReadRequest, WireReadResponse } from '../protocol/streams-messages.ts';
import { metadataView, type MetadataView } from './metadata-events.ts';
import { planRead, type ReadPlan } from './read-plan.ts';
import { toReadEvents } from './resolve-links.ts';
import { wireStream } from './stream-name.ts';
import { subscribe } from './subscribe.ts';
import type { EventReader, EventStore, ReadOptions } from '../../../store/event-store.ts';
import { toPosition, toSequence } from '../../../store/position.ts';

export async function read(
  context: KurrentContext,
  request: WireReadRequest,
  send: Send<WireReadResponse>,
  info: CallInfo,
): Promise<void> {
  const plan = boundToTenant(planRead(request), info);
  const { source } = plan;
  const name = source.kind === 'all' ? '$all' : source.stream;
  await context.access.check(info.identity, name, 'read');
  if (plan.live) return subscribe(context, plan, send, info);
  const metadata = source.kind === 'stream' ? await metadataView(context, name) : undefined;
  const keep = source.kind === 'stream' ? undefined : context.access.visible(info.identity);
  const { signal } = info;
  const wire = { ...plan, hide: hidesFrom(context, info.identity) };
  const { pageEventsMax: pageSize, pageBytesMax: pageBytes } = context.limits;
  const options = { signal, keep, pageSize, pageBytes };
  let isFirst = true;
  for await (const page of readPages(context.store, plan, metadata, options)) {
    if (isFirst) await sendFirst(plan, page[0], send);
    isFirst = false;
    const events = metadata === undefined ? page : page.map(metadata.show);
    for await (const each of await toReadEvents(context, plan, events, info)) {
      const full = send({ event: toWireEvent(each, wire) });
      if (full !== undefined) await full;
    }
  }
  if (source.kind === 'all') return;
  if (isFirst && !(await streamExists(context, source, keep))) {
    await send({ streamNotFound: { streamIdentifier: wireStream(name) } });
  } else if (plan.wantsPositions) {
    const last = await lastNumber(context.store, source);
    if (isFirst && plan.direction === 'forwards' && plan.from !== last + 1) {
      await send({ firstStreamPosition: last + 1 });
    }
    await send({ lastStreamPosition: last });
  }
}

/** The page of KurrentDB: only if the first one is empty, the client learns where the stream starts. */
const serverPage = 32;

async function sendFirst(
  { wantsPositions, source, direction, from, limit }: ReadPlan,
  first: RecordedEvent | undefined,
  send: Send<WireReadResponse>,
): Promise<void> {
  const isWanted = wantsPositions && source.kind === 'stream' && direction === 'forwards';
  if (!isWanted || first === undefined) return;
  const start = typeof from === 'number' ? from : 0;
  if (first.revision < start + Math.min(limit, serverPage)) return;
  await send({ firstStreamPosition: first.revision });
}

/** The last number of a stream or an index stream. */
async function lastNumber(
  store: KurrentContext['store'],
  source: Exclude<ReadPlan['source'], { readonly kind: 'all' }>,
): Promise<number> {
  if (source.kind === 'stream') return (await store.streamInfo(source.stream))?.revision ?? -1;
  const { filter } = source;
  const [last] = await store.readAll({ direction: 'backwards', limit: 1, filter }).toArray();
  return last === undefined ? 0 : toSequence(last.position);
}

/** Callers of a tenant see only its events in `$all` and index streams. */
function boundToTenant(plan: ReadPlan, { identity }: CallInfo): ReadPlan {
  const { source } = plan;
  if (identity.tenant === undefined || source.kind === 'stream') return plan;
  const filter = { ...source.filter, tenant: identity.tenant };
  return { ...plan, source: { ...source, filter } };
}

async function streamExists(
  { store }: KurrentContext,
  source: Exclude<ReadPlan['source'], { readonly kind: 'all' }>,
  keep: ((event: RecordedEvent) => boolean) | undefined,
): Promise<boolean> {
  if (source.kind === 'index') {
    const [first] = await store.readAll({ filter: source.filter, limit: 1 }).toArray();
    return first !== undefined && keep?.(first) !== false;
  }
  const info = await store.streamInfo(source.stream);
  return info !== undefined && info.revision >= 0 && info.deleted === 'no';
}

interface PageOptions {
  readonly signal: AbortSignal;
  readonly pageSize: number;
  readonly pageBytes: number;
  /** The events that the reader may see. Default: all. */
  readonly keep?: ((event: RecordedEvent) => boolean) | undefined;
}

async function* readPages(
  store: Pick<EventStore, 'readStream' | 'readAll'>,
  plan: ReadPlan,
  metadata: MetadataView | undefined,
  { keep, ...options }: PageOptions,
): AsyncGenerator<readonly RecordedEvent[], void, undefined> {
  if (metadata !== undefined) {
    const { last } = metadata;
    const { from } = plan;
    const forwards = plan.direction === 'forwards';
    const isIn = typeof from === 'number' ? (forwards ? from <= last : from >= last) : true;
    if (from === (forwards ? 'end' : 'start') || !isIn) return;
    yield* store.readStream(metadata.stream, { ...options, from: last, limit: 1 }).pages();
    return;
  }
  let { limit: left } = plan;
  // The limit counts visible events only, so the store must not apply it before the filter.
  const limit = keep === undefined ? left : undefined;
  if (left <= 0) return;
  for await (const page of openReader(store, plan, { ...options, limit }).pages()) {
    const visible = keep === undefined ? page : page.filter(keep).slice(0, left);
    if (visible.length > 0) yield visible;
    left -= visible.length;
    if (left <= 0) return;
  }
}

function openReader(
  store: Pick<EventStore, 'readStream' | 'readAll'>,
  { source, direction, from }: ReadPlan,
  options: ReadOptions,
): EventReader {
  const about = { ...options, direction };
  const forwards = direction === 'forwards';
  if (source.kind === 'stream') {
    // A forwards read from the end has no events.
    const at = from === 'start' ? 0 : from === 'end' ? Number.MAX_SAFE_INTEGER : from;
    return store.readStream(source.stream, { ...about, from: at });
  }
  const { filter } = source;
  if (typeof from === 'string') {
    if (from === (forwards ? 'start' : 'end')) return store.readAll({ ...about, filter });
    const after = forwards ? Number.MAX_SAFE_INTEGER : 0;
    return store.readAll({ ...about, filter, after: toPosition(after) });
  }
  // Reads include the start, except backwards reads of `$all`; starts of the store are exclusive.
  const inclusive = forwards || source.kind === 'index';
  const after = inclusive ? (forwards ? Math.max(0, from - 1) : from + 1) : from;
  return store.readAll({ ...about, filter, after: toPosition(after) });
}
