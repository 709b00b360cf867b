// Server-sent events, with periodic comments as keep-alives for proxies and clients.

import { withinTime } from '../../foundation/async/within-time.ts';
import { jsonText } from '../../foundation/parse-json.ts';
import type { StreamResponse } from './route.ts';

export type SentEvent = {
  readonly event?: string | undefined;
  readonly id?: string | undefined;
} & ({ readonly data: unknown } | { /** The data as text. */ readonly json: string });

const heartbeatMs = 15_000;

/**
 * The `text/event-stream` response of a route.
 *
 * @example
 * import { route, serverSentEvents } from 'millrace/platform';
 *
 * async function* countdown() {
 *   for (const left of [3, 2, 1]) yield { event: 'left', id: String(left), data: { left } };
 * }
 * const follow = route({
 *   method: 'GET', path: '/countdown', summary: 'Counts down', tag: 'demo', access: 'anonymous',
 *   isLong: true,
 *   responses: { 200: { description: 'The countdown', contentType: 'text/event-stream' } },
 *   handle: async (request) => serverSentEvents(countdown(), request),
 * });
 */
export function serverSentEvents(
  events: AsyncIterable<SentEvent>,
  { signal }: { readonly signal: AbortSignal },
): StreamResponse {
  return {
    contentType: 'text/event-stream',
    headers: { 'x-accel-buffering': 'no' },
    stream: textOf(events, signal),
  };
}

async function* textOf(
  events: AsyncIterable<SentEvent>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const iterator = events[Symbol.asyncIterator]();
  try {
    yield ': connected\n\n';
    let next = iterator.next();
    while (!signal.aborted) {
      const found = await withinTime(next, { ms: heartbeatMs, late: () => undefined });
      if (found === undefined) {
        yield ': still here\n\n';
        continue;
      }
      if (found.done === true) return;
      yield lineOf(found.value);
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

/** JSON has no line breaks; line breaks in ids and names would become fields. */
function lineOf({ event, id, ...content }: SentEvent): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const idLine = id === undefined ? '' : `id: ${id.replaceAll(/[\r\n\0]/g, '')}\n`;
  const json = 'json' in content ? content.json : jsonText(content.data);
  return `${name}${idLine}data: ${json}\n\n`;
}
