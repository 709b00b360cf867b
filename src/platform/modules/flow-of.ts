// What a command takes over from the request that it came by.

import type { ApiRequest } from './route.ts';

export interface Flow {
  /** When the sender says to which flow it belongs. */
  readonly correlationId?: string;
  /** W3C trace context, which travels on in the events' headers. */
  readonly headers?: Readonly<Record<string, unknown>>;
}

/**
 * For a route's `headersShown`, where its handler uses `flowOf`.
 *
 * @example
 * import { flowHeadersShown } from 'millrace/platform';
 *
 * const headersShown = { 'Idempotency-Key': 'A repeat gets the first answer.', ...flowHeadersShown };
 */
export const flowHeadersShown: Readonly<Record<string, string>> = {
  'X-Correlation-Id': 'The flow that it belongs to. Default: a new one.',
  traceparent: 'W3C trace context: what follows is below it.',
};

/**
 * The flow and the trace that a request belongs to, for `handle`.
 *
 * @example
 * import { flowOf, type ApiRequest, type WebContext } from 'millrace/platform';
 *
 * const ship = (context: WebContext, request: ApiRequest) =>
 *   context.handle({
 *     tenant: 'core', id: 'o-1', command: { type: 'order.ship', payload: {} }, ...flowOf(request),
 *   });
 */
export function flowOf({ headers }: Pick<ApiRequest, 'headers'>): Flow {
  const { 'x-correlation-id': correlationId, traceparent = '', tracestate } = headers;
  const isTraced = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent);
  const trace = tracestate === undefined ? { traceparent } : { traceparent, tracestate };
  return {
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(isTraced ? { headers: trace } : {}),
  };
}
