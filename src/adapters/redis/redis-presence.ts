// Whether Redis is there, for people: one line when it goes, one when it is back, however many calls
// and attempts to connect fail between. A server that hangs is seen by its calls only, and of a cluster a
// part can be away while the rest answers.

import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { RedisClient } from './redis-connection.ts';

export interface RedisPresence {
  /** What the connection said last. */
  readonly lastError: unknown;
  failed(err: unknown): void;
  worked(): void;
  stop(): void;
}

/** So long nothing must have failed before an answer counts as its return. */
const quietMs = 1_000;

export function watchRedis(
  client: RedisClient,
  { observer, clock }: { readonly observer: Observer; readonly clock: Clock },
): RedisPresence {
  let isAway = false;
  let lastError: unknown;
  let failedAtMs = 0;

  function failed(err: unknown): void {
    failedAtMs = clock.now();
    if (isAway) return;
    isAway = true;
    observer.log?.warn({ err }, 'Redis is away');
    observer.gauge?.('redis_up', 0, {});
  }

  function back(): void {
    if (isAway) observer.log?.info({}, 'Redis is back');
    isAway = false;
    observer.gauge?.('redis_up', 1, {});
  }

  const onError = (err: unknown): void => {
    lastError = err;
    failed(err);
  };
  const onClose = (): void => failed(lastError);
  const events = { error: onError, 'node error': onError, close: onClose, ready: back } as const;
  for (const [name, listener] of Object.entries(events)) client.on(name, listener);
  return {
    get lastError() {
      return lastError;
    },
    failed,
    worked() {
      if (isAway && clock.now() - failedAtMs >= quietMs) back();
    },
    stop() {
      for (const [name, listener] of Object.entries(events)) client.off(name, listener);
    },
  };
}
