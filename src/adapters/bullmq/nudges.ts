// Nudges go over Pub/Sub: one that gets lost is made up for by the dispatcher's tick.

import type { RedisClient, RedisConnection } from '../redis/redis-connection.ts';
import { patientClient } from './patient-client.ts';

export interface Nudges extends Disposable {
  tell(): void;
  listen(listener: () => void): () => void;
}

export function createNudges(connection: RedisConnection, channel: string): Nudges {
  const listeners = new Set<() => void>();
  let ears: RedisClient | undefined;
  let isTelling = false;
  let isAskedAgain = false;

  /** However many ask, one is on its way, and one follows. */
  async function tell(): Promise<void> {
    isTelling = true;
    do {
      isAskedAgain = false;
      // Lost: the tick finds it.
      await connection.ask((client) => client.publish(channel, '')).catch(() => undefined);
    } while (isAskedAgain);
    isTelling = false;
  }

  function openEars(): RedisClient {
    const client = patientClient(connection.client);
    client.on('message', () => {
      for (const listener of listeners) listener();
    });
    // It is repeated by the client itself whenever it has come back.
    client.subscribe(channel).catch(() => undefined);
    return client;
  }

  return {
    tell() {
      if (isTelling) isAskedAgain = true;
      else void tell();
    },
    listen(listener) {
      ears ??= openEars();
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.dispose]() {
      listeners.clear();
      ears?.disconnect();
    },
  };
}
