// Uses one client at a time and replaces it after a failure. The native bridge of the client does not recover if its
// first read finds no server.

import { slept } from '../../foundation/async/slept.ts';
import { unlessAborted, whenAborted } from '../../foundation/async/when-aborted.ts';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { closeClient, loadClient, type Client, type ClientSubscription } from './client.ts';
import { isKind, unavailable } from './errors.ts';

export interface KurrentdbConnection extends AsyncDisposable {
  /**
   * Runs the work with a client, and translates its errors. The client does not support signals: after an abort, its
   * result is ignored.
   */
  use<T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** The items of a subscription until the signal fires. After a failure, the subscription is opened again. */
  follow<Item>(
    open: (client: Client) => Promise<OpenSubscription<Item>>,
    options: FollowOptions,
  ): AsyncGenerator<Item, void, undefined>;
}

interface OpenSubscription<Item> {
  readonly subscription: ClientSubscription;
  readonly items: AsyncIterable<Item>;
}

interface FollowOptions {
  readonly signal: AbortSignal | undefined;
  /** Its error ends the iteration. */
  readonly onFailure: (failure: MillraceError) => void;
}

interface SharedClient {
  readonly client: Client;
  users: number;
  failed: boolean;
}

/** The pause before a subscription is opened again; every failure doubles it. */
const pauseMs = { first: 50, max: 2_000 } as const;

export async function connectKurrentdb(
  target: string | Client,
  onFailure: (error: unknown) => void,
): Promise<KurrentdbConnection> {
  const isOwn = typeof target === 'string';
  const create = isOwn ? await loadClient(target) : () => target;
  const closing = new AbortController();
  const { signal: closed } = closing;
  let current: SharedClient | undefined = { client: create(), users: 0, failed: false };

  const discard = async ({ client }: SharedClient): Promise<void> => {
    if (!isOwn) return;
    try {
      await closeClient(client);
    } catch (error) {
      onFailure(error);
    }
  };

  const endOf = (signal: AbortSignal | undefined): AbortSignal =>
    signal === undefined ? closed : AbortSignal.any([closed, signal]);

  const storeClosed = (): MillraceError =>
    new MillraceError('STORE_CLOSED', 'the event store was closed');

  /** The client of one call or subscription, which may fail. */
  const borrow = () => {
    if (closed.aborted) throw storeClosed();
    current ??= { client: create(), users: 0, failed: false };
    const shared = current;
    shared.users += 1;
    return {
      client: shared.client,
      failed(error: unknown): MillraceError {
        if (closed.aborted) return storeClosed();
        const failure = unavailable(error);
        // After "not leader" the client connects to the leader; a new one would ask the same node again.
        if (isOwn && failure.retryable && !isKind(failure, 'not-leader')) {
          shared.failed = true;
          if (current === shared) current = undefined;
        }
        return failure;
      },
      [Symbol.dispose](): void {
        shared.users -= 1;
        // Other requests may still use the client.
        if (shared.failed && shared.users === 0) void discard(shared);
      },
    };
  };

  return {
    async use(work, signal) {
      using borrowed = borrow();
      try {
        if (signal?.aborted === true) throw aborted(signal);
        return await unlessAborted(work(borrowed.client), endOf(signal));
      } catch (error) {
        throw borrowed.failed(error);
      }
    },
    async *follow(open, { signal, onFailure: failed }) {
      const end = endOf(signal);
      const isOver = (): boolean => signal?.aborted === true;
      for (let failures = 0; !isOver(); failures += 1) {
        using borrowed = borrow();
        try {
          using ending = whenAborted(end);
          const { subscription, items } = await open(borrowed.client);
          void ending.aborted.then(() => subscription.destroy(aborted(end)));
          subscription.once('confirmation', () => {
            failures = 0;
          });
          try {
            yield* items;
          } finally {
            await subscription.unsubscribe();
          }
        } catch (error) {
          if (isOver()) return;
          failed(borrowed.failed(error));
        }
        await slept(systemClock, Math.min(pauseMs.max, pauseMs.first * 2 ** failures), end);
      }
    },
    async [Symbol.asyncDispose]() {
      if (closed.aborted) return;
      closing.abort();
      if (current !== undefined) await discard(current);
    },
  };
}
