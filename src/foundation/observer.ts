// The telemetry port. Every method is optional: `observer.count?.(…)` does not even evaluate its
// arguments without a listener, so the silent observer costs one property read.

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

/** Constant message, variable fields, in pino's argument order; a pino logger fits as it is. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * What the runtime tells the outside about itself: metrics, spans and logs.
 *
 * @example
 * import type { Observer } from 'millrace/foundation';
 *
 * const counts = new Map<string, number>();
 * const observer: Observer = {
 *   count: (name, _attributes, by = 1) => counts.set(name, (counts.get(name) ?? 0) + by),
 * };
 * observer.count?.('events_processed_total', { handler: 'currency-projection' });
 * observer.log?.warn({ handler: 'currency-projection' }, 'handler failed'); // no listener: free
 */
export interface Observer {
  readonly count?: (name: string, attributes: Attributes, by?: number) => void;
  readonly gauge?: (name: string, value: number, attributes: Attributes) => void;
  /** One observation of a histogram, in the unit that the name ends with. */
  readonly record?: (name: string, value: number, attributes: Attributes) => void;
  /** Links: what it also comes from, where it has more than one parent. */
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
