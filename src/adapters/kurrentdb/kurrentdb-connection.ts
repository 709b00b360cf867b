// One client at a time, and a new one when it failed: the bridge that a client reads through never
// recovers from a first read that found no server.

import { aborted } from '../../foundation/clock.ts';
import { closeClient, loadClient, type Client } from './kurrentdb-client.ts';
import { isTransient, storeClosed, unavailable } from './kurrentdb-error.ts';

export interface KurrentdbConnection extends AsyncDisposable {
  readonly isClosed: boolean;
  /** Runs the work with a client; its errors come out as the client's own. */
  use<T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** For what is not decided by an error: everything comes out as ours. */
  ask<T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T>;
}

interface Held {
  readonly client: Client;
  users: number;
  failed: boolean;
}

export async function connectKurrentdb(
  target: string | Client,
  onFailure: (error: unknown) => void,
): Promise<KurrentdbConnection> {
  const isOurs = typeof target === 'string';
  const create = isOurs ? clientsOf(await loadClient(), target) : () => target;
  const closing = Promise.withResolvers<never>();
  closing.promise.catch(() => undefined);
  let current: Held | undefined = { client: create(), users: 0, failed: false };
  let isClosed = false;

  const discard = async ({ client }: Held): Promise<void> => {
    if (!isOurs) return;
    try {
      await closeClient(client);
    } catch (error) {
      onFailure(error);
    }
  };

  const use = async <T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> => {
    if (isClosed) throw storeClosed();
    if (signal?.aborted === true) throw aborted(signal);
    current ??= { client: create(), users: 0, failed: false };
    const held = current;
    held.users += 1;
    try {
      return await orStopped(work(held.client), signal, closing.promise);
    } catch (error) {
      if (isOurs && isTransient(error)) {
        held.failed = true;
        if (current === held) current = undefined;
      }
      throw isClosed ? storeClosed() : error;
    } finally {
      held.users -= 1;
      // Others may still wait for answers through it.
      if (held.failed && held.users === 0) void discard(held);
    }
  };

  return {
    get isClosed() {
      return isClosed;
    },
    use,
    async ask(work, signal) {
      try {
        return await use(work, signal);
      } catch (error) {
        throw unavailable(error);
      }
    },
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      closing.reject(storeClosed());
      if (current !== undefined) await discard(current);
    },
  };
}

function clientsOf(connect: (url: string) => Client, url: string): () => Client {
  return () => connect(url);
}

/** The client takes no signals: what it still does after one is nobody's business any more. */
async function orStopped<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  closing: Promise<never>,
): Promise<T> {
  work.catch(() => undefined);
  if (signal === undefined) return Promise.race([work, closing]);
  const stopped = Promise.withResolvers<never>();
  const onAbort = (): void => stopped.reject(aborted(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, closing, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
