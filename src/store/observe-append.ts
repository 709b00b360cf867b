// The span of an append: a child of the first event's trace, linked to the traces of the other events.
// The events keep the trace context that they were created with. Each published event is also a line of the log.

import { hasCode } from '../foundation/error.ts';
import { traceOf, type Logger, type Observer, type TraceContext } from '../foundation/observer.ts';
import type { AppendResult, StreamAppend } from './event-store.ts';

export async function observeAppend<Result>(
  startSpan: NonNullable<Observer['span']>,
  appends: readonly StreamAppend[],
  work: () => Promise<Result>,
): Promise<Result> {
  const events = appends.flatMap((append) => append.events);
  const [first] = events;
  const traces = new Map<string, TraceContext>();
  for (const { headers } of events) {
    const trace = traceOf(headers);
    if (trace !== undefined) traces.set(trace.traceparent, trace);
  }
  const [parent, ...links] = traces.values();
  const span = startSpan(
    'append events',
    {
      stream: appends[0]?.stream,
      tenant: first?.tenant,
      correlationId: first?.correlationId,
      ...(events.length === 1
        ? { eventId: first?.eventId, eventType: first?.type }
        : { events: events.length }),
    },
    parent,
    links,
  );
  try {
    return await work();
  } catch (error) {
    // A conflict is a normal outcome: the command is decided again.
    if (hasCode(error, 'VERSION_CONFLICT')) span.set({ outcome: 'conflict' });
    else span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/**
 * Logs the ids of the published events, without payloads: the correlation id finds all lines of a flow. Level debug,
 * because a busy store publishes thousands of events each second.
 */
export async function logPublished(
  log: Logger,
  appends: readonly StreamAppend[],
  work: () => Promise<readonly AppendResult[]>,
): Promise<readonly AppendResult[]> {
  // Read before the first await: afterwards the caller may modify the events.
  const lines = appends.map(({ stream, events }) =>
    events.map(({ eventId, type, tenant, aggregate, correlationId, causationId }) => ({
      eventId,
      eventType: type,
      aggregateId: aggregate.id,
      correlationId,
      causationId,
      tenant,
      stream,
    })),
  );
  const results = await work();
  for (const [index, { isDuplicate }] of results.entries()) {
    for (const line of isDuplicate ? [] : (lines[index] ?? [])) log.debug(line, 'Event published');
  }
  return results;
}
