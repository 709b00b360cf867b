// The telemetry port. Every method is optional: without a listener `observer.count?.(…)` does not evaluate its
// arguments, so the silent observer costs one property read.

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** W3C trace context, as it travels in event metadata and headers. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

export interface Span {
  readonly context: TraceContext | undefined;
  set(attributes: Attributes): void;
  fail(error: unknown): void;
  end(): void;
}

/** Constant message, variable fields, in pino's argument order: a pino logger fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * Receives the metrics, spans and logs of the runtime.
 *
 * @example
 * import type { Observer } from 'millrace/foundation';
 *
 * const counts = new Map<string, number>();
 * const observer: Observer = {
 *   count: (name, _attributes, by = 1) => counts.set(name, (counts.get(name) ?? 0) + by),
 * };
 * observer.count?.('events_processed_total', { handler: 'currency-projection' });
 * observer.log?.warn({ handler: 'currency-projection' }, 'handler failed'); // no log: no cost
 */
export interface Observer {
  readonly count?: (name: string, attributes: Attributes, by?: number) => void;
  readonly gauge?: (name: string, value: number, attributes: Attributes) => void;
  /** One observation of a histogram, in the unit at the end of the name. */
  readonly record?: (name: string, value: number, attributes: Attributes) => void;
  /** Links are further causes, for a span with more than one parent. */
  readonly span?: (
    name: string,
    attributes: Attributes,
    parent?: TraceContext,
    links?: readonly TraceContext[],
  ) => Span;
  readonly log?: Logger;
}

/**
 * An observer without listeners.
 *
 * @example
 * import { silentObserver } from 'millrace/foundation';
 *
 * silentObserver.count?.('events_published_total', {});
 */
export const silentObserver: Observer = Object.freeze({});

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
