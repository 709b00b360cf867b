// One topic on one connection: what was missed, then what happens, each once and in order; held back while it
// is in doubt whether this one may still see it.

import { MillraceError } from 'millrace/foundation';
import type { SocketClient } from 'millrace/platform';
import type { Position } from 'millrace/store';
import type { LiveFeed } from './live-feed.ts';
import type { LiveMessage } from './live-message.ts';

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
