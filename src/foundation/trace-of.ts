import type { TraceContext } from './observer.ts';

/** The W3C trace context that headers carry: those of an event, a command or a message. */
export function traceOf(headers: Readonly<Record<string, unknown>> = {}): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return undefined;
  return typeof tracestate === 'string' ? { traceparent, tracestate } : { traceparent };
}
