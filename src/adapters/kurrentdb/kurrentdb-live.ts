// Telling live readers that there is more. One subscription to everything serves all of them: its
// filter matches nothing, so that what comes is not the events but how far the server has got.

import { createWaiters } from '../../store/waiters.ts';
import type { ClientSubscription } from './kurrentdb-client.ts';
import type { KurrentdbConnection } from './kurrentdb-connection.ts';
import { positionOf } from './kurrentdb-reader.ts';

export interface KurrentdbLive extends AsyncDisposable {
  whenMore(after: number, signal: AbortSignal): Promise<void>;
  /** Whoever waits looks again. */
  wakeAll(): void;
  /** Everything up to here can be read; undefined while nobody follows the server. */
  seen(): number | undefined;
}

export interface LiveOptions {
  /** Behind a subscription that works, readers look by themselves this seldom. */
  readonly pollIntervalMs: number;
  readonly onFailure: (error: unknown) => void;
}

/** While there is no subscription; every failure doubles it. */
const retryMs = { first: 50, max: 2_000 } as const;

/** One checkpoint for every event that is looked at; none is of this type. */
const nothing = {
  filterOn: 'eventType',
  prefixes: ['$millrace.none'],
  checkpointInterval: 1,
  maxSearchWindow: 1,
} as const;

export function createKurrentdbLive(
  connection: KurrentdbConnection,
  { pollIntervalMs, onFailure }: LiveOptions,
): KurrentdbLive {
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
        // They look by themselves: whether the server is there is theirs to find out.
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
      // Without a subscription nothing makes a reader get as far as was once seen: it would spin.
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
