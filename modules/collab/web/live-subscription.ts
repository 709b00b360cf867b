// One topic on one connection: missed messages, then live ones, each once and in order. While the access of the user is
// being checked again, messages are buffered.

import { buildStreamName, type TenantLookup } from 'millrace/contracts';
import { MillraceError } from 'millrace/foundation';
import type { SocketClient } from 'millrace/platform';
import type { EventStore, Position, RecordedEvent } from 'millrace/store';
import type { LiveFeed } from './live-feed.ts';
import { liveMessageOf, liveTaskTypes, type LiveMessage } from './live-message.ts';

export interface LiveSubscription {
  /** Rejects without access, or if too many messages were missed; the subscription has then ended. */
  begin(): Promise<void>;
  /** Checks the access again. */
  recheck(): void;
  end(): void;
}

export interface LiveSubscriptionOptions {
  readonly topic: string;
  readonly userId: string;
  readonly client: Pick<SocketClient, 'send' | 'signal' | 'whenSent'>;
  readonly feed: Pick<LiveFeed, 'join' | 'position'>;
  /** Rejects if the user has no access. */
  readonly check: () => Promise<void>;
  /** The first message to the client after the subscription started. */
  readonly welcome: (position: Position) => object;
  readonly since: Position | undefined;
  /** Missed messages that the user may see. */
  readonly missed: (since: Position) => AsyncIterable<LiveMessage>;
  /** Called when access is lost or the buffer is full. */
  readonly onLost: (error: unknown) => void;
}

/** Messages buffered while catching up or checking access. */
const bufferedMax = 10_000;

interface Buffered {
  readonly position: Position;
  readonly text: string;
}

export function createLiveSubscription(options: LiveSubscriptionOptions): LiveSubscription {
  const { client, feed, userId, check, since } = options;
  /** Undefined: live, messages are sent directly. */
  let buffer: Buffered[] | undefined = [];
  let needsCheck = false;
  let hasEnded = false;
  // The feed may repeat events that were already sent as missed messages.
  let after: Position = since ?? feed.position;

  const leave = feed.join(options.topic, (item) => {
    if (item.kind === 'hint') {
      if (buffer === undefined && item.from !== userId) client.send(item.text);
      return;
    }
    if (item.kind !== 'message' || item.audience?.has(userId) === false) return;
    const { position, text } = item;
    if (buffer === undefined) pass({ position, text });
    else if (buffer.length < bufferedMax) buffer.push({ position, text });
    else lose(new MillraceError('RATE_LIMITED', 'Too many messages at once. Subscribe again.'));
  });

  function pass({ position, text }: Buffered): void {
    if (position <= after) return;
    after = position;
    client.send(text);
  }

  function end(): void {
    hasEnded = true;
    buffer = undefined;
    leave();
  }

  function lose(error: unknown): void {
    if (hasEnded) return;
    end();
    options.onLost(error);
  }

  /** Checks access until no further check is requested, then sends the buffered messages. */
  async function settle(): Promise<void> {
    do {
      needsCheck = false;
      await check();
    } while (needsCheck && !hasEnded);
    if (hasEnded) return;
    const waiting = buffer ?? [];
    buffer = undefined;
    for (const message of waiting) pass(message);
  }

  async function begin(): Promise<void> {
    try {
      await check();
      client.send(options.welcome(after));
      if (since !== undefined) {
        for await (const { position, message } of options.missed(since)) {
          if (needsCheck) {
            needsCheck = false;
            await check();
          }
          if (hasEnded || client.signal.aborted) return;
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
    recheck() {
      needsCheck = true;
      if (buffer !== undefined || hasEnded) return;
      buffer = [];
      settle().catch(lose);
    },
  };
}

/** Clients that missed more must reload. */
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
  const from = await firstAfter(store, stream, { since, last });
  if (last - from >= missedMax) throw tooManyMissed();
  if (from > last) return;
  yield* messagesOf(store.readStream(stream, { from }));
}

/** Messages about all tasks of a workspace; the caller filters by access. */
export async function* missedInWorkspace(
  store: EventStore,
  { tenant, id, since }: Missed,
): AsyncGenerator<LiveMessage> {
  const filter = { types: liveTaskTypes, category: 'collab.task.v1', tenant };
  let count = 0;
  for await (const event of store.readAll({ after: since, filter })) {
    count += 1;
    if (count > missedMax) throw tooManyMissed();
    const { workspaceId } = event.payload as { readonly workspaceId?: string };
    const live = workspaceId === id ? liveMessageOf(event) : undefined;
    if (live !== undefined) yield live;
  }
}

/** Binary search: positions grow with revisions. */
async function firstAfter(
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

function tooManyMissed(): MillraceError {
  return new MillraceError(
    'VERSION_CONFLICT',
    `More than ${missedMax} events were missed. Reload and subscribe again.`,
    {
      details: { field: 'since', missedMax },
    },
  );
}
