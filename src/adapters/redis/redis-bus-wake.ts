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
  /** Whether what is told now is heard. */
  readonly isListening: boolean;
  /** Begins to listen, once; resolves when it does, or has failed and tries on. */
  listen(): Promise<void>;
  on(listener: (wake: Wake) => void): () => void;
}

/** It waits for its server however long that takes; a question to it does not. */
const patient: RedisOptions = {
  lazyConnect: false,
  autoResubscribe: true,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
};

/** What is meant for this process alone, on a channel of its own. */
export interface BusInbox {
  readonly channel: string;
  readonly onMessage: (text: string) => void;
}

export function createBusWakes(client: RedisClient, channel: string, inbox?: BusInbox): BusWakes {
  const channels = inbox === undefined ? [channel] : [channel, inbox.channel];
  const listeners = new Set<(wake: Wake) => void>();
  let listening: Promise<void> | undefined;
  let subscriber: RedisClient | undefined;
  let isSubscribed = false;
  let isClosed = false;

  const tell = (wake: Wake): void => {
    for (const listener of listeners) listener(wake);
  };
  const onMessage = (from: string, text: string): void => {
    if (from === channel) tell(parseWake(text));
    else if (from === inbox?.channel) inbox.onMessage(text);
  };
  /** What was told before is unknown. */
  const onReady = (): void => tell({ kind: 'anything' });
  const onSubscribed = (): void => {
    isSubscribed = true;
    onReady();
  };
  const ignore = (): void => undefined;

  /** A cluster's client keeps a connection for it anyway. */
  function connect(): RedisClient {
    const made = client.isCluster ? client : ofItsOwn(client as Redis);
    made.on('message', onMessage);
    made.on('ready', onReady);
    // The client that sends tells of an outage.
    if (made !== client) made.on('error', ignore);
    return made;
  }

  async function subscribe(): Promise<void> {
    subscriber ??= connect();
    const failed = Promise.withResolvers<void>();
    subscriber.once('error', failed.resolve);
    const subscribed = subscriber.subscribe(...channels).then(onSubscribed, () => {
      // The next wait tries again; the looks in between have to do until then.
      listening = undefined;
    });
    await Promise.race([subscribed, failed.promise]);
    subscriber.off('error', failed.resolve);
  }

  return {
    get isListening() {
      return isSubscribed && subscriber?.status === 'ready';
    },
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
      // Not waited for: the server may be away.
      else subscriber.unsubscribe(...channels).catch(ignore);
    },
  };
}

function ofItsOwn(client: Redis): Redis {
  const { commandTimeout = 5_000 } = client.options;
  return client.duplicate({ ...patient, commandTimeout });
}

function parseWake(text: string): Wake {
  const [kind, ...words] = text.split(' ');
  if (kind === 's' && words[0] !== '*') return { kind: 'stored', subjects: words };
  if (kind !== 'g') return { kind: 'anything' };
  const [group = '', ...streamKeys] = words;
  return { kind: 'freed', group, streamKeys };
}
