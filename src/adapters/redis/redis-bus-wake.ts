// Wake-ups over pub/sub, on a connection of their own. They may get lost: whoever waits looks again
// after a while all the same, and at once when the connection comes back.

import type { Redis, RedisOptions } from 'ioredis';
import type { RedisClient } from './redis-connection.ts';

/** `s` subjects (`*`: many): something was stored. `g` group, stream keys: something is free again. */
export type Wake =
  | { readonly kind: 'stored'; readonly subjects: readonly string[] }
  | { readonly kind: 'freed'; readonly group: string; readonly streamKeys: readonly string[] }
  | { readonly kind: 'anything' };

export interface BusWakes extends AsyncDisposable {
  /** Begins to listen, once; resolves when it does, or has failed and tries on. */
  listen(): Promise<void>;
  on(listener: (wake: Wake) => void): () => void;
}

/** It waits for its server however long that takes. */
const patient: RedisOptions = {
  lazyConnect: false,
  autoResubscribe: true,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
};

export function createBusWakes(client: RedisClient, channel: string): BusWakes {
  const listeners = new Set<(wake: Wake) => void>();
  let listening: Promise<void> | undefined;
  let subscriber: RedisClient | undefined;
  let isClosed = false;

  const tell = (wake: Wake): void => {
    for (const listener of listeners) listener(wake);
  };
  const onMessage = (from: string, text: string): void => {
    if (from === channel) tell(parseWake(text));
  };
  const onReady = (): void => tell({ kind: 'anything' });
  const ignore = (): void => undefined;

  async function subscribe(): Promise<void> {
    // A cluster's client keeps a connection for it anyway.
    const made = client.isCluster ? client : (client as Redis).duplicate(patient);
    subscriber = made;
    made.on('message', onMessage);
    made.on('ready', onReady);
    const failed = Promise.withResolvers<void>();
    // The client that sends tells of an outage.
    if (made !== client) made.on('error', () => failed.resolve());
    // What was told before is unknown.
    const subscribed = made.subscribe(channel).then(onReady, () => {
      // Of a cluster the next wait tries again; the looks in between have to do until then.
      if (made === client) listening = undefined;
    });
    await Promise.race([subscribed, failed.promise]);
  }

  return {
    async listen() {
      if (isClosed) return;
      listening ??= subscribe();
      await listening;
    },
    on(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      if (subscriber === undefined) return;
      subscriber.off('message', onMessage);
      subscriber.off('ready', onReady);
      if (subscriber !== client) subscriber.disconnect();
      else await subscriber.unsubscribe(channel).catch(ignore);
    },
  };
}

function parseWake(text: string): Wake {
  const [kind, ...words] = text.split(' ');
  if (kind === 's' && words[0] !== '*') return { kind: 'stored', subjects: words };
  if (kind !== 'g') return { kind: 'anything' };
  const [group = '', ...streamKeys] = words;
  return { kind: 'freed', group, streamKeys };
}
