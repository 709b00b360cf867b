// Wake-ups over pub/sub, on a separate connection. Wake-ups may get lost: a waiting reader also
// polls from time to time, and immediately after the connection is restored.

import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { RedisClient } from '../connection/connection.ts';

/**
 * A wake-up is `s` and the subjects with new messages (`*`: many), or `g`, a group and the keys of the streams with
 * released messages.
 */
export type Wake =
  | { readonly kind: 'stored'; readonly subjects: readonly string[] }
  | { readonly kind: 'freed'; readonly group: string; readonly streamKeys: readonly string[] }
  | { readonly kind: 'anything' };

export interface BusWakes extends AsyncDisposable {
  /** Whether a wake-up that is published now arrives. */
  readonly isListening: boolean;
  /** Subscribes once; resolves when subscribed, or when it failed and is retried in the background. */
  listen(): Promise<void>;
  on(listener: (wake: Wake) => void): () => void;
}

/** The subscriber waits for its server without a limit; commands have a time limit. */
const patient: RedisOptions = {
  lazyConnect: false,
  // `listen` resubscribes: the client's automatic resubscription causes an unhandled rejection if it times out.
  autoResubscribe: false,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
};

const resubscribeMs = 200;

export function createBusWakes(client: RedisClient, channel: string): BusWakes {
  const listeners = new Set<(wake: Wake) => void>();
  let listening: Promise<void> | undefined;
  let subscriber: Redis | undefined;
  let retry: NodeJS.Timeout | undefined;
  let isSubscribed = false;
  let isClosed = false;

  const notify = (wake: Wake): void => {
    for (const listener of listeners) listener(wake);
  };
  const onMessage = (_: string, text: string): void => notify(parseWake(text));
  /** Wakes all readers, because wake-ups that were published before the subscription are lost. */
  const onReady = (): void => notify({ kind: 'anything' });
  const onSubscribed = (): void => {
    isSubscribed = true;
    onReady();
  };

  function connect(): Redis | undefined {
    const connection = client.isCluster ? toAnyNode(client as Cluster) : toServer(client as Redis);
    connection?.on('message', onMessage);
    connection?.on('ready', () => void resubscribe(connection));
    // The client that sends commands reports an outage.
    connection?.on('error', () => undefined);
    connection?.once('end', onEnd);
    return connection;
  }

  async function resubscribe(connection: Redis): Promise<void> {
    if (!isSubscribed || isClosed) return;
    try {
      await connection.subscribe(channel);
      onReady();
    } catch {
      connection.disconnect(true);
    }
  }

  /** Reconnects to any node of a cluster, because each node receives all messages. */
  function onEnd(): void {
    subscriber = undefined;
    isSubscribed = false;
    listening = undefined;
    if (isClosed) return;
    retry = setTimeout(() => {
      listening = undefined;
      void listen();
    }, resubscribeMs).unref();
  }

  async function subscribe(): Promise<void> {
    subscriber ??= connect();
    if (subscriber === undefined) {
      onEnd();
      return;
    }
    const current = subscriber;
    const failed = Promise.withResolvers<void>();
    current.once('error', failed.resolve);
    const subscribed = current.subscribe(channel).then(onSubscribed, () => {
      // The next wait tries again; until then readers poll.
      if (subscriber === current) listening = undefined;
    });
    await Promise.race([subscribed, failed.promise]);
    current.off('error', failed.resolve);
  }

  async function listen(): Promise<void> {
    if (isClosed) return;
    listening ??= subscribe();
    await listening;
  }

  return {
    get isListening() {
      return isSubscribed && subscriber?.status === 'ready';
    },
    listen,
    on(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(retry);
      subscriber?.off('message', onMessage);
      subscriber?.disconnect();
    },
  };
}

/**
 * Connects to a random node. The subscriber of the cluster client would leak: it adds a listener to its closed socket
 * with each reconnect attempt.
 */
function toAnyNode(cluster: Cluster): Redis | undefined {
  const nodes = cluster.nodes('all');
  const node = nodes[Math.floor(Math.random() * nodes.length)];
  const { commandTimeout = 5_000 } = node?.options ?? {};
  return node?.duplicate({
    ...patient,
    commandTimeout,
    readOnly: false,
    retryStrategy: () => null,
  });
}

function toServer(client: Redis): Redis {
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
