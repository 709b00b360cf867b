// Streams/Read: bounded reads, page by page; `subscribe.ts` has live reads.

import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { CallInfo, Send } from '../calls.ts';
import { hidesFrom, type KurrentContext } from '../context.ts';
import { toWireEvent } from '../events/to-wire.ts';
import type { WireReadRequest, WireReadResponse } from '../protocol/streams-messages.ts';
import { metadataView } from './metadata-events.ts';
import { planRead, type ReadPlan } from './read-plan.ts';
import { toReadEvents } from './resolve-links.ts';
import { wireStream } from './stream-name.ts';
import { subscribe } from './subscribe.ts';
import type { EventReader, EventStore, ReadOptions } from '../../../store/event-store.ts';
import { toPosition } from '../../../store/position.ts';

export async function read(
  context: KurrentContext,
  request: WireReadRequest,
  send: Send<WireReadResponse>,
  info: CallInfo,
): Promise<void> {
  const plan = boundToTenant(planRead(request), info);
  const name = plan.source.kind === 'all' ? '$all' : plan.source.stream;
  await context.access.check(info.identity, name, 'read');
  if (plan.live) return subscribe(context, plan, send, info);
  const shown =
    plan.source.kind === 'stream' ? await metadataView(context, plan.source.stream) : undefined;
  const first = plan.source.kind === 'stream' && plan.direction === 'forwards' ? plan.from : 0;
  let last: RecordedEvent | undefined;
  let count = 0;
  const keep = plan.source.kind === 'stream' ? undefined : context.access.visible(info.identity);
  const { signal } = info;
  const wire = { ...plan, hide: hidesFrom(context, info.identity) };
  const { pageEventsMax: pageSize, pageBytesMax: pageBytes } = context.limits;
  const options = { signal, keep, pageSize, pageBytes };
  for await (const page of readPages(context.store, plan, options)) {
    const [head] = page;
    if (last === undefined && head !== undefined && isTruncated(head, plan, first)) {
      await send({ firstStreamPosition: head.revision });
    }
    last = page.at(-1);
    count += page.length;
    const events = shown === undefined ? page : page.map(shown);
    for await (const each of await toReadEvents(context, plan, events, info)) {
      const full = send({ event: toWireEvent(each, wire) });
      if (full !== undefined) await full;
    }
  }
  const { source, direction, limit } = plan;
  if (source.kind === 'all') return;
  if (last === undefined) {
    if (!(await streamExists(context, source, keep))) {
      await send({ streamNotFound: { streamIdentifier: wireStream(source.stream) } });
    }
  } else if (source.kind === 'stream' && direction === 'forwards' && count < limit) {
    await send({ lastStreamPosition: last.revision });
  }
}

/** Callers of a tenant see only its events in `$all` and index streams. */
function boundToTenant(plan: ReadPlan, { identity }: CallInfo): ReadPlan {
  const { source } = plan;
  if (identity.tenant === undefined || source.kind === 'stream') return plan;
  const filter = { ...source.filter, tenant: identity.tenant };
  return { ...plan, source: { ...source, filter } };
}

function isTruncated(
  event: RecordedEvent,
  { source, direction }: ReadPlan,
  from: ReadPlan['from'],
): boolean {
  if (source.kind !== 'stream' || direction === 'backwards' || from === 'end') return false;
  return event.revision > (from === 'start' ? 0 : from);
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
  { keep, ...options }: PageOptions,
): AsyncGenerator<readonly RecordedEvent[], void, undefined> {
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
