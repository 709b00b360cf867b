// Tells once that the broker is gone, and once that it is back: a loop that tries again says neither twice.

import type { Clock } from '../foundation/clock.ts';
import type { Attributes, Observer } from '../foundation/observer.ts';

export interface BrokerHealth {
  isDown(error: unknown): void;
  isUp(): void;
}

export function createBrokerHealth(
  { clock, observer }: { readonly clock: Clock; readonly observer: Observer },
  who: Attributes,
): BrokerHealth {
  let downSinceMs: number | undefined;
  return {
    isDown(err) {
      if (downSinceMs !== undefined) return;
      downSinceMs = clock.now();
      observer.count?.('bus_consumer_interruptions_total', who);
      observer.log?.warn({ ...who, err }, 'bus consumer lost its broker');
    },
    isUp() {
      if (downSinceMs === undefined) return;
      const downMs = clock.now() - downSinceMs;
      downSinceMs = undefined;
      observer.count?.('bus_consumer_resumes_total', who);
      observer.log?.info({ ...who, downMs }, 'bus consumer resumed');
    },
  };
}
