// Uses one client at a time and replaces it after a failure. The native bridge of the client does not recover if its
// first read finds no server.

import { unlessAborted } from '../../foundation/async/when-aborted.ts';
import { aborted } from '../../foundation/clock.ts';
import { convertErrors } from '../../foundation/error.ts';
import { closeClient, loadClient, type Client } from './client.ts';
import { isKind, isTransient, storeClosed, unavailable } from './errors.ts';

export interface KurrentdbConnection extends AsyncDisposable {
  /**
   * Runs the work with a client; errors of the client pass unchanged. The client does not support signals: after an
   * abort, its result is ignored.
   */
  use<T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Like `use`, with errors translated to `MillraceError`. */
  request<T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T>;
}

interface SharedClient {
  readonly client: Client;
  users: number;
  failed: boolean;
}

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

  const use = async <T>(work: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> => {
    if (closed.aborted) throw storeClosed();
    if (signal?.aborted === true) throw aborted(signal);
    current ??= { client: create(), users: 0, failed: false };
    const shared = current;
    shared.users += 1;
    try {
      const end = signal === undefined ? closed : AbortSignal.any([closed, signal]);
      return await unlessAborted(work(shared.client), end);
    } catch (error) {
      // After "not leader" the client connects to the leader; a new one would ask the same node again.
      if (isOwn && isTransient(error) && !isKind(error, 'not-leader')) {
        shared.failed = true;
        if (current === shared) current = undefined;
      }
      throw closed.aborted ? storeClosed() : error;
    } finally {
      shared.users -= 1;
      // Other requests may still use the client.
      if (shared.failed && shared.users === 0) void discard(shared);
    }
  };

  return {
    use,
    request: (work, signal) => convertErrors(() => use(work, signal), unavailable),
    async [Symbol.asyncDispose]() {
      if (closed.aborted) return;
      closing.abort();
      if (current !== undefined) await discard(current);
    },
  };
}
