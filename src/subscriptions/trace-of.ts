import type { TraceContext } from '../foundation/observer.ts';

/** The trace of whoever appended the event, as its headers carry it. */
export function traceOf(headers: Readonly<Record<string, unknown>> = {}): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return undefined;
  return typeof tracestate === 'string' ? { traceparent, tracestate } : { traceparent };
}
