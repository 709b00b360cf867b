// The span of an append: below whoever made the events, and linked to the others where they came from
// several. The events keep the trace that they were made in: what was appended is what is read.

import { hasCode } from '../foundation/error.ts';
import type { Observer, TraceContext } from '../foundation/observer.ts';
import { traceOf } from '../foundation/trace-of.ts';
import type { StreamAppend } from './event-store.ts';

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
    // To come second is an answer: the command is decided again.
    if (hasCode(error, 'VERSION_CONFLICT')) span.set({ outcome: 'conflict' });
    else span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}
