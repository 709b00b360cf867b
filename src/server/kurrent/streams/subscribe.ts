// Streams/Read with a subscription: catches up, then follows, at the pace of the client.

import { createIds } from '../../../foundation/ids.ts';
import type { FeedItem } from '../../../store/event-store.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import { streamOfMetadata } from '../../../store/stream-metadata.ts';
import type { CallInfo, Send } from '../calls.ts';
import { hidesFrom, type KurrentContext } from '../context.ts';
import { toWireEvent } from '../events/to-wire.ts';
import type { WirePosition, WireTime } from '../protocol/shared-messages.ts';
import type { WireReadResponse } from '../protocol/streams-messages.ts';
import { shuttingDown } from '../rpc-error.ts';
import { createCheckpointPace } from './checkpoint-pace.ts';
import { toReadEvents } from './resolve-links.ts';
import type { ReadPlan } from './read-plan.ts';

const ids = createIds();

export async function subscribe(
  context: KurrentContext,
  plan: ReadPlan,
  send: Send<WireReadResponse>,
  info: CallInfo,
): Promise<void> {
  const release = context.subscriptions.acquire();
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  info.signal.addEventListener('abort', leave, { once: true });
  context.stopping.addEventListener('abort', leave, { once: true });
  try {
    if (!context.stopping.aborted && !info.signal.aborted) {
      await follow(context, plan, send, { ...info, signal: leaving.signal });
    }
    if (context.stopping.aborted) throw shuttingDown();
  } finally {
    info.signal.removeEventListener('abort', leave);
    context.stopping.removeEventListener('abort', leave);
    leave();
    release();
  }
}

async function follow(
  context: KurrentContext,
  plan: ReadPlan,
  send: Send<WireReadResponse>,
  info: CallInfo,
): Promise<void> {
  const { source } = plan;
  // A client may append as soon as the subscription is confirmed, so the start is fixed before.
  const start = await startOf(context, plan);
  const feed = await opened(openFeed(context, plan, start, info.signal), source.kind === 'stream');
  await send({ confirmation: { subscriptionId: ids.next() } });
  const every = source.kind === 'all' ? source.checkpointEvery : undefined;
  const pace = every === undefined ? undefined : createCheckpointPace(start, every);
  let number = start;
  let isLive = false;
  const checkpoints = async (upTo: number): Promise<void> => {
    for (const point of pace?.reached(upTo) ?? []) {
      await send({ checkpoint: { ...wirePosition(point), timestamp: wireTime(context) } });
    }
  };
  const keep = source.kind === 'stream' ? undefined : context.access.visible(info.identity);
  const wire = { ...plan, hide: hidesFrom(context, info.identity) };
  for await (const item of feed) {
    if (item.kind === 'events') {
      const visible = keep === undefined ? item.events : item.events.filter(keep);
      let index = 0;
      for await (const event of await toReadEvents(context, plan, visible, { ...info, isLive })) {
        const recorded = visible[index];
        index += 1;
        if (recorded === undefined) continue;
        const sequence = toSequence(recorded.position);
        if (pace !== undefined) await checkpoints(sequence - 1);
        const full = send({ event: toWireEvent(event, wire) });
        if (full !== undefined) await full;
        number = source.kind === 'stream' ? recorded.revision : sequence;
      }
    }
    const upTo = toSequence(item.position);
    if (source.kind === 'all') number = upTo;
    await checkpoints(upTo);
    if (item.kind === 'caughtUp' || item.kind === 'fellBehind') {
      const timestamp = wireTime(context);
      const where =
        source.kind === 'all' ? { position: wirePosition(number) } : { streamRevision: number };
      await send({ [item.kind]: { timestamp, ...where } });
      isLive = item.kind === 'caughtUp';
    }
  }
}

function openFeed(
  { store, limits }: KurrentContext,
  { source, from }: ReadPlan,
  after: number,
  signal: AbortSignal,
): AsyncIterable<FeedItem> {
  const { pageEventsMax: pageSize, pageBytesMax: pageBytes } = limits;
  const options = { pageSize, pageBytes, signal };
  if (source.kind === 'stream') {
    return store.subscribeToStream(source.stream, {
      ...options,
      after: from === 'end' ? from : after,
    });
  }
  const { filter } = source;
  const checkpointEvery = source.kind === 'all' ? source.checkpointEvery : undefined;
  return store.subscribe({ ...options, after: toPosition(after), filter, checkpointEvery });
}

/** Reads the first item: a subscriber of a stream gets every event that is stored from then on. */
async function opened(
  feed: AsyncIterable<FeedItem>,
  readsFirst: boolean,
): Promise<AsyncIterable<FeedItem>> {
  if (!readsFirst) return feed;
  const items = feed[Symbol.asyncIterator]();
  const first = await items.next();
  return (async function* () {
    try {
      for (let item = first; item.done !== true; item = await items.next()) yield item.value;
    } finally {
      await items.return?.();
    }
  })();
}

/** The number after which the subscription starts. */
async function startOf({ store }: KurrentContext, { source, from }: ReadPlan): Promise<number> {
  if (source.kind !== 'stream') {
    return from === 'start' ? 0 : from === 'end' ? toSequence(await store.head()) : from;
  }
  const start = from === 'start' ? -1 : from;
  const isMetadata = streamOfMetadata(source.stream) !== undefined;
  if (start !== 'end' && !isMetadata) return start;
  const last = (await store.streamInfo(source.stream))?.revision ?? -1;
  // Only the last metadata event is shown.
  return start === 'end' ? last : Math.max(start, last - 1);
}

function wirePosition(sequence: number): WirePosition {
  return { commitPosition: sequence, preparePosition: sequence };
}

function wireTime({ clock }: KurrentContext): WireTime {
  const ms = clock.now();
  return { seconds: Math.floor(ms / 1_000), nanos: (ms % 1_000) * 1_000_000 };
}
