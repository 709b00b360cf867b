import type { TraceContext } from './observer.ts';

/**
 * The W3C trace context in the headers of an event, a command or a message.
 *
 * @example
 * import { traceOf } from 'millrace/foundation';
 *
 * console.log(traceOf({ traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }));
 */
export function traceOf(headers: Readonly<Record<string, unknown>> = {}): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return undefined;
  return typeof tracestate === 'string' ? { traceparent, tracestate } : { traceparent };
}
