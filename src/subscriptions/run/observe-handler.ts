// Metrics and spans of handlers: events by status, duration, and one span per attempt as a child of the
// span that appended the event.

import type { Clock } from '../../foundation/clock.ts';
import { traceOf, type Attributes, type Observer, type Span } from '../../foundation/observer.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { outcomeOf } from '../../foundation/handler-outcome.ts';
import type { HandlerCalls, HandlerWork } from './handler-call.ts';

export interface ObserveOptions {
  readonly handler: string;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function observeHandler(calls: HandlerCalls, options: ObserveOptions): HandlerCalls {
  const { handler, clock, observer } = options;
  const { count, record, span: startSpan } = observer;
  if (count === undefined && record === undefined && startSpan === undefined) return calls;

  function begin({ events, attempt }: HandlerWork): Span | undefined {
    const [event] = events;
    if (startSpan === undefined || event === undefined) return undefined;
    if (events.length === 1) {
      const attributes = { handler, attempt, ...attributesOf(event) };
      return startSpan('handle event', attributes, traceOf(event.headers));
    }
    // A span has only one parent, so the span of a batch links to the traces of all its events.
    const links = events.map((each) => traceOf(each.headers)).filter((each) => each !== undefined);
    const attributes = { handler, attempt, events: events.length };
    return startSpan('handle event', attributes, undefined, links);
  }

  function report({ events }: HandlerWork, status: 'success' | 'error', startedMs: number): void {
    const seconds = (clock.now() - startedMs) / 1_000 / events.length;
    for (const { type, tenant, aggregate, correlationId } of events) {
      const attributes = { handler, event_type: type, correlationId };
      count?.('events_processed_total', { ...attributes, status, bc: aggregate.bc, tenant });
      record?.('event_processing_duration_seconds', seconds, attributes);
    }
  }

  return {
    run(work) {
      const startedMs = clock.now();
      const span = begin(work);
      const succeeded = (): void => {
        report(work, 'success', startedMs);
        span?.end();
      };
      const failed = (error: unknown): never => {
        report(work, 'error', startedMs);
        const { kind } = outcomeOf(error);
        span?.set({ outcome: kind });
        // A postponed event is not an error.
        if (kind !== 'snooze') span?.fail(error);
        span?.end();
        throw error;
      };
      try {
        const pending = calls.run(span === undefined ? work : { ...work, trace: span.context });
        if (pending !== undefined) return pending.then(succeeded, failed);
      } catch (error) {
        failed(error);
      }
      succeeded();
      return undefined;
    },
  };
}

function attributesOf(event: RecordedEvent): Attributes {
  return {
    eventId: event.eventId,
    eventType: event.type,
    stream: event.stream,
    tenant: event.tenant,
    correlationId: event.correlationId,
    ...(event.causationId === undefined ? {} : { causationId: event.causationId }),
  };
}
