// Wakes live readers. One subscription to all events serves all readers. The filter of the subscription matches
// nothing, so the server sends only its progress, not the events.

import { createWaiters } from '../../foundation/async/waiters.ts';
import type { ClientSubscription } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { positionOf } from './reader.ts';

export interface KurrentdbListener extends AsyncDisposable {
  whenMore(after: number, signal: AbortSignal): Promise<void>;
  /** Wakes all waiting readers, which then read again. */
  wakeAll(): void;
  /** The position up to which all events can be read; undefined while there is no subscription. */
  seen(): number | undefined;
}

export interface ListenerOptions {
  /** How often readers poll in addition to the subscription. */
  readonly pollIntervalMs: number;
  readonly onFailure: (error: unknown) => void;
}

/** The pause before a new subscription; every failure doubles it. */
const retryMs = { first: 50, max: 2_000 } as const;

/** A filter that matches no event and requests one checkpoint per scanned event. */
const nothing = {
  filterOn: 'eventType',
  prefixes: ['$millrace.none'],
  checkpointInterval: 1,
  maxSearchWindow: 1,
} as const;

export function createKurrentdbListener(
  connection: KurrentdbConnection,
  { pollIntervalMs, onFailure }: ListenerOptions,
): KurrentdbListener {
  const waiters = createWaiters();
  let seenAt = 0;
  let subscription: ClientSubscription | undefined;
  let isLive = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function advance(sequence: number): void {
    if (sequence <= seenAt) return;
    seenAt = sequence;
    waiters.wakeAll();
  }

  function start(after: number): void {
    if (closed || subscription !== undefined || timer !== undefined) return;
    seenAt = Math.max(seenAt, after);
    void connection
      .use(
        async (client) =>
          new Promise<never>((_resolve, reject) => {
            const opened = client.subscribeToAll({
              fromPosition: positionOf(seenAt, 'forwards'),
              filter: {
                ...nothing,
                prefixes: [...nothing.prefixes],
                checkpointReached: (_of, { commit }) => advance(Number(commit)),
              },
            });
            subscription = opened;
            opened.on('confirmation', () => {
              isLive = true;
              failures = 0;
            });
            opened.on('data', ({ event }) => advance(Number(event?.position?.commit ?? 0n)));
            opened.on('error', reject);
            opened.on('end', () => reject(new Error('the server closed the subscription')));
          }),
      )
      .catch(lost);
  }

  function lost(error: unknown): void {
    subscription = undefined;
    isLive = false;
    if (closed) return;
    failures += 1;
    onFailure(error);
    timer = setTimeout(
      () => {
        timer = undefined;
        if (waiters.size > 0) start(seenAt);
        // The readers read again and report an outage themselves.
        waiters.wakeAll();
      },
      Math.min(retryMs.max, retryMs.first * 2 ** (failures - 1)),
    );
    timer.unref();
  }

  const poll = setInterval(() => waiters.wakeAll(), pollIntervalMs);
  poll.unref();

  return {
    seen: () => (isLive ? seenAt : undefined),
    wakeAll: () => waiters.wakeAll(),
    async whenMore(after, signal) {
      if (closed) return;
      start(after);
      // Require a subscription: after an outage, a reader may not reach the position seen before, and would spin.
      await waiters.wait(signal, () => isLive && seenAt > after);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      clearTimeout(timer);
      clearInterval(poll);
      waiters.wakeAll();
      await subscription?.unsubscribe();
    },
  };
}
