// The flow and trace of an HTTP request, for the commands that it causes.

import type { ApiRequest } from './route.ts';

export interface Flow {
  /** Set if the client sent one. */
  readonly correlationId?: string;
  /** W3C trace context, stored in the headers of the events. */
  readonly headers?: Readonly<Record<string, unknown>>;
}

/**
 * For `headersShown` of a route whose handler uses `flowOf`.
 *
 * @example
 * import { flowHeadersShown } from 'millrace/platform';
 *
 * const headersShown = { 'Idempotency-Key': 'A duplicate gets the first result.', ...flowHeadersShown };
 */
export const flowHeadersShown: Readonly<Record<string, string>> = {
  'X-Correlation-Id': 'The flow that it belongs to. Default: a new one.',
  traceparent: 'W3C trace context: what follows is below it.',
};

/**
 * The flow and trace of a request, for `handle`.
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
