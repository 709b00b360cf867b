// What the outside hears of handlers: how many events, how long each took, with what result.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import type { HandlerCalls, HandlerWork } from './handler-call.ts';

export interface ObserveOptions {
  readonly handler: string;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function observeHandler(calls: HandlerCalls, options: ObserveOptions): HandlerCalls {
  const { handler, clock, observer } = options;
  if (observer.count === undefined && observer.record === undefined) return calls;

  const tell = ({ events }: HandlerWork, status: 'success' | 'error', startedMs: number): void => {
    const seconds = (clock.now() - startedMs) / 1_000 / events.length;
    for (const { type } of events) {
      observer.count?.('events_processed_total', { handler, event_type: type, status });
      observer.record?.('event_processing_duration_seconds', seconds, {
        handler,
        event_type: type,
      });
    }
  };

  return {
    run(work, deadline) {
      const startedMs = clock.now();
      try {
        const pending = calls.run(work, deadline);
        if (pending === undefined) {
          tell(work, 'success', startedMs);
          return undefined;
        }
        return pending.then(
          () => tell(work, 'success', startedMs),
          (error: unknown) => {
            tell(work, 'error', startedMs);
            throw error;
          },
        );
      } catch (error) {
        tell(work, 'error', startedMs);
        throw error;
      }
    },
  };
}
