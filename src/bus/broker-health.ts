// Reports a lost and a restored connection to the broker once each, however many calls fail.

import type { Clock } from '../foundation/clock.ts';
import type { Attributes, Observer } from '../foundation/observer.ts';

export interface BrokerHealth {
  /** How often the connection was restored. */
  readonly resumes: number;
  /** `resumes` as it was when the failed call began: a call from before the last resume proves no new outage. */
  isDown(error: unknown, resumes: number): void;
  isUp(): void;
}

export function createBrokerHealth(
  { clock, observer }: { readonly clock: Clock; readonly observer: Observer },
  who: Attributes,
): BrokerHealth {
  let downSinceMs: number | undefined;
  let resumes = 0;
  return {
    get resumes() {
      return resumes;
    },
    isDown(err, resumesBefore) {
      if (downSinceMs !== undefined || resumesBefore < resumes) return;
      downSinceMs = clock.now();
      observer.count?.('bus_consumer_interruptions_total', who);
      observer.log?.warn({ ...who, err }, 'bus consumer lost its broker');
    },
    isUp() {
      if (downSinceMs === undefined) return;
      const downMs = clock.now() - downSinceMs;
      downSinceMs = undefined;
      resumes += 1;
      observer.count?.('bus_consumer_resumes_total', who);
      observer.log?.info({ ...who, downMs }, 'bus consumer resumed');
    },
  };
}
