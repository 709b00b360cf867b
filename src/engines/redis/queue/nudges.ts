// Nudges wake listeners in all processes over Pub/Sub. If a nudge is lost, the listeners poll at their next tick.

import type { RedisClient, RedisConnection } from '../connection/connection.ts';
import { blockingClient } from './blocking-client.ts';

export interface Nudges extends Disposable {
  publish(channel: string): void;
  listen(channel: string, listener: () => void): () => void;
}

export function createNudges(connection: RedisConnection): Nudges {
  const listeners = new Map<string, Set<() => void>>();
  /** Channels with a running publish; true: publish once more. */
  const publishing = new Map<string, boolean>();
  let subscriber: RedisClient | undefined;

  /** Any number of requests during a publish results in one more publish. */
  async function publish(channel: string): Promise<void> {
    do {
      publishing.set(channel, false);
      // If the publish fails, the listeners poll at their next tick.
      await connection.ask((client) => client.publish(channel, '')).catch(() => undefined);
    } while (publishing.get(channel) === true);
    publishing.delete(channel);
  }

  function openSubscriber(): RedisClient {
    const client = blockingClient(connection.client);
    client.on('message', (channel: string) => {
      for (const listener of listeners.get(channel) ?? []) listener();
    });
    return client;
  }

  return {
    publish(channel) {
      if (publishing.has(channel)) publishing.set(channel, true);
      else void publish(channel);
    },
    listen(channel, listener) {
      const known = listeners.get(channel);
      const all = known ?? new Set();
      listeners.set(channel, all.add(listener));
      subscriber ??= openSubscriber();
      // The client repeats the subscription whenever it reconnects.
      if (known === undefined) subscriber.subscribe(channel).catch(() => undefined);
      return () => void all.delete(listener);
    },
    [Symbol.dispose]() {
      listeners.clear();
      subscriber?.disconnect();
    },
  };
}
