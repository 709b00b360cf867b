// One topic on one connection: what was missed, then what happens, each once and in order; held back while it
// is in doubt whether this one may still see it.

import { MillraceError } from 'millrace/foundation';
import type { SocketClient } from 'millrace/platform';
import type { Position, EventStore, RecordedEvent } from 'millrace/store';
import type { LiveFeed } from './live-feed.ts';
import { type LiveMessage, liveMessageOf, liveTaskTypes } from './live-message.ts';
import { buildStreamName, type TenantLookup } from 'millrace/contracts';

export interface LiveSubscription {
  /** Rejects when it may not be seen, or too much was missed; it is over then. */
  begin(): Promise<void>;
  /** Looks again whether it may be seen. */
  doubt(): void;
  end(): void;
}

export interface LiveSubscriptionOptions {
  readonly topic: string;
  readonly userId: string;
  readonly client: Pick<SocketClient, 'send' | 'signal' | 'whenSent'>;
  readonly feed: Pick<LiveFeed, 'join' | 'position'>;
  /** Rejects when it may not be seen. */
  readonly check: () => Promise<void>;
  /** Before everything else. */
  readonly welcome: (position: Position) => object;
  readonly since: Position | undefined;
  /** Those of them that this user may see. */
  readonly missed: (since: Position) => AsyncIterable<LiveMessage>;
  /** It ended by itself: access was lost, or too much had to be held back. */
  readonly onLost: (error: unknown) => void;
}

/** Held back while it is caught up with, or while it is in doubt. */
const heldMax = 10_000;

interface Held {
  readonly position: Position;
  readonly text: string;
}

export function createLiveSubscription(options: LiveSubscriptionOptions): LiveSubscription {
  const { client, feed, userId, check, since } = options;
  /** Undefined: it is live. */
  let held: Held[] | undefined = [];
  let isDoubtful = false;
  let isOver = false;
  // What was told as missed is not told again when the feed comes to it.
  let after: Position = since ?? feed.position;

  const leave = feed.join(options.topic, (item) => {
    if (item.kind === 'hint') {
      if (held === undefined && item.from !== userId) client.send(item.text);
      return;
    }
    if (item.kind !== 'message' || item.audience?.has(userId) === false) return;
    const { position, text } = item;
    if (held === undefined) pass({ position, text });
    else if (held.length < heldMax) held.push({ position, text });
    else lose(new MillraceError('RATE_LIMITED', 'too much happened at once: subscribe again'));
  });

  function pass({ position, text }: Held): void {
    if (position <= after) return;
    after = position;
    client.send(text);
  }

  function end(): void {
    isOver = true;
    held = undefined;
    leave();
  }

  function lose(error: unknown): void {
    if (isOver) return;
    end();
    options.onLost(error);
  }

  /** Until nobody doubts it any more; then what was held back goes out. */
  async function settle(): Promise<void> {
    do {
      isDoubtful = false;
      await check();
    } while (isDoubtful && !isOver);
    if (isOver) return;
    const waiting = held ?? [];
    held = undefined;
    for (const each of waiting) pass(each);
  }

  async function begin(): Promise<void> {
    try {
      await check();
      client.send(options.welcome(after));
      if (since !== undefined) {
        for await (const { position, message } of options.missed(since)) {
          if (isDoubtful) {
            isDoubtful = false;
            await check();
          }
          if (isOver || client.signal.aborted) return;
          client.send(message);
          after = position;
          await client.whenSent();
        }
      }
      await settle();
    } catch (error) {
      end();
      throw error;
    }
  }

  return {
    begin,
    end,
    doubt() {
      isDoubtful = true;
      if (held !== undefined || isOver) return;
      held = [];
      settle().catch(lose);
    },
  };
}

// What somebody missed: read from the store itself, behind the position that was seen last.
/** Whoever missed more reads the pages again. */
const missedMax = 10_000;

export interface Missed {
  readonly tenant: string;
  readonly id: string;
  readonly since: Position;
}

export async function* missedInChat(
  store: EventStore,
  { tenant, id, since }: Missed,
  tenants: TenantLookup,
): AsyncGenerator<LiveMessage> {
  const stream = buildStreamName('collab', 'chat', 1, tenant, id, tenants);
  const last = (await store.streamInfo(stream))?.revision ?? -1;
  const from = await firstBehind(store, stream, { since, last });
  if (last - from >= missedMax) throw tooMuch();
  if (from > last) return;
  yield* messagesOf(store.readStream(stream, { from }));
}

/** Of all tasks of the workspace; which of them somebody sees is for others to decide. */
export async function* missedInWorkspace(
  store: EventStore,
  { tenant, id, since }: Missed,
): AsyncGenerator<LiveMessage> {
  const filter = { types: liveTaskTypes, tenant };
  let count = 0;
  for await (const event of store.readAll({ after: since, filter })) {
    count += 1;
    if (count > missedMax) throw tooMuch();
    const { workspaceId } = event.payload as { readonly workspaceId?: string };
    const live = workspaceId === id ? liveMessageOf(event) : undefined;
    if (live !== undefined) yield live;
  }
}

/** Revisions and positions grow together: looked for by halves, however long the stream is. */
async function firstBehind(
  store: EventStore,
  stream: string,
  { since, last }: { readonly since: Position; readonly last: number },
): Promise<number> {
  let [low, high] = [0, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await store.readStream(stream, { from: middle, limit: 1 }).toArray();
    if (event === undefined || event.position > since) high = middle;
    else low = middle + 1;
  }
  return low;
}

async function* messagesOf(events: AsyncIterable<RecordedEvent>): AsyncGenerator<LiveMessage> {
  for await (const event of events) {
    const live = liveMessageOf(event);
    if (live !== undefined) yield live;
  }
}

function tooMuch(): MillraceError {
  return new MillraceError('VERSION_CONFLICT', 'too much was missed: load the pages again', {
    details: { field: 'since', missedMax },
  });
}
