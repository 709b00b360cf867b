// Live reading: catch up page by page, then wait for more. The consumer pulls, so what is held in
// memory is one page being consumed and one being fetched, whatever the lag.

import { aborted } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { FeedItem } from './event-store.ts';
import { nextTurn } from './next-turn.ts';
import { toPosition } from './position.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** One step of reading on: what was found, how far it looked, whether that was all. */
interface FeedPage {
  readonly events: readonly RecordedEvent[];
  readonly considered: number;
  readonly end: boolean;
}

export interface FeedSource {
  /** `isLive`: it was at the end before, and `whenMore` tells of what this read may leave out there. */
  readonly read: (after: number, signal: AbortSignal, isLive: boolean) => Promise<FeedPage>;
  readonly whenMore: (after: number, signal: AbortSignal) => Promise<void>;
}

export interface FeedOptions {
  readonly after: number;
  readonly signal: AbortSignal | undefined;
  /** Waits before the next try after so many failures in a row; rejects when aborted. */
  readonly pause: (failures: number, error: unknown, signal: AbortSignal) => Promise<void>;
  /** Without a match for so many sequences, a checkpoint tells how far it got. */
  readonly checkpointEvery: number;
}

export async function* eventFeed(
  source: FeedSource,
  options: FeedOptions,
): AsyncGenerator<FeedItem, void, undefined> {
  // Leaving the loop must also end a wait under way.
  const leaving = new AbortController();
  const signal =
    options.signal === undefined
      ? leaving.signal
      : AbortSignal.any([leaving.signal, options.signal]);
  let after = options.after;
  let told = after;
  let live = false;
  let next: Promise<FeedPage> | undefined;
  // A database that is away for a while is no end of a subscription: it goes on where it was.
  const persistently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let failures = 1; ; failures += 1) {
      try {
        return await work();
      } catch (error) {
        if (!hasCode(error, 'STORE_UNAVAILABLE') || !error.retryable) throw error;
        await options.pause(failures, error, signal);
      }
    }
  };
  const read = (from: number): Promise<FeedPage> =>
    persistently(() => source.read(from, signal, live));
  try {
    for (;;) {
      const page = await (next ?? read(after));
      // Not every engine looks at the signal; an abort must not wait for the end of the store.
      if (signal.aborted) throw aborted(signal);
      const before = after;
      after = page.considered;
      // The next page is fetched while the consumer works on this one.
      next = page.end ? undefined : handled(read(after));
      if (live && !page.end) {
        live = false;
        // The page is still to be given out: its own position would not be safe to keep yet.
        yield { kind: 'fellBehind', position: toPosition(before) };
      }
      if (page.events.length > 0) {
        told = after;
        yield { kind: 'events', events: page.events, position: toPosition(after) };
      } else if (after - told >= options.checkpointEvery) {
        told = after;
        yield { kind: 'checkpoint', position: toPosition(after) };
      }
      if (!page.end) {
        await nextTurn();
        continue;
      }
      if (!live) {
        live = true;
        told = after;
        yield { kind: 'caughtUp', position: toPosition(after) };
      }
      await persistently(() => source.whenMore(after, signal));
    }
  } catch (error) {
    // The caller's own signal is how a subscription ends; everything else is a failure.
    if (options.signal?.aborted !== true || !isAbort(error)) throw error;
  } finally {
    leaving.abort();
  }
}

/** A page that is fetched ahead may fail after nobody waits for it any more. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function isAbort(error: unknown): boolean {
  return hasCode(error, 'ABORTED') || (error instanceof Error && error.name === 'AbortError');
}
