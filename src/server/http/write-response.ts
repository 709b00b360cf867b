// Writes the response of a route: a short JSON text at once, all else at the pace of the client. A client that does not
// read is disconnected.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MillraceError } from '../../foundation/error.ts';
import { jsonText } from '../../foundation/parse-json.ts';
import type { ReaderMemory, RouteResponse } from '../../platform/modules/route.ts';

// Created once, because creating an error with its stack for each abort is slow.
export const clientTooSlow = new MillraceError('CLIENT_TOO_SLOW', 'the client reads too slowly');
/** A client that continues to read within this time gets the reason. */
const closeMsMax = 1_000;
const eventStream = 'text/event-stream';
/** A longer JSON text is written in parts of this length. */
export const partChars = 32_768;

export async function writeResponse(
  response: ServerResponse,
  reply: RouteResponse,
  {
    isHead,
    signal,
    memory,
  }: {
    readonly isHead: boolean;
    readonly signal: AbortSignal;
    readonly memory: Pick<ReaderMemory, 'hold'> | undefined;
  },
): Promise<void> {
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
  if ('stream' in reply) {
    response.writeHead(reply.status ?? 200, { 'content-type': reply.contentType });
    if (!isHead) await writeStream(response, reply.stream, signal);
    const isCut = signal.reason === clientTooSlow && reply.contentType === eventStream;
    response.end(isCut ? `event: closed\ndata: {"code":"${clientTooSlow.code}"}\n\n` : undefined);
    return;
  }
  const text = 'json' in reply ? reply.json : textOf(reply.body);
  if (text === undefined) {
    response.writeHead(reply.status ?? 204).end();
    return;
  }
  response.writeHead(reply.status ?? 200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  if (isHead || text.length <= partChars) {
    memory?.hold(2 * text.length);
    response.end(isHead ? undefined : text);
    return;
  }
  await writeStream(response, textParts(text, memory), signal);
  // With fewer bytes than announced, the client sees that the response is incomplete.
  if (signal.aborted) response.destroy();
  else response.end();
}

/** A client that reads slowly but steadily is seen to read. All of the text stays in memory until its end. */
function* textParts(
  text: string,
  memory: Pick<ReaderMemory, 'hold'> | undefined,
): Generator<string> {
  let at = 0;
  while (at < text.length) {
    let end = at + partChars;
    // Not within a character.
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1;
    memory?.hold(2 * text.length);
    yield text.slice(at, end);
    at = end;
  }
}

function textOf(body: unknown): string | undefined {
  return body === undefined ? undefined : jsonText(body);
}

/** Closes the connection of a client that does not read; only a stream of events can say why. */
export function disconnectSlowClient(response: ServerResponse): void {
  const isStream = response.getHeader('content-type') === eventStream;
  if (!isStream) return void response.destroy();
  const { socket } = response;
  // The connection must not wait for another request.
  response.once('finish', () => socket?.destroySoon());
  const timer = setTimeout(() => response.destroy(), closeMsMax);
  response.once('close', () => clearTimeout(timer));
}

async function writeStream(
  response: ServerResponse,
  stream: AsyncIterable<string | Uint8Array> | Iterable<string>,
  signal: AbortSignal,
): Promise<void> {
  // Send the headers now, because the first part may take long.
  if (Symbol.asyncIterator in stream) response.flushHeaders();
  try {
    for await (const part of stream) {
      if (signal.aborted) return;
      if (!response.write(part)) await once(response, 'drain', { signal });
    }
  } catch (error) {
    // The client disconnected, or the server is stopping: the error cannot be reported.
    if (!signal.aborted) throw error;
  }
}

/** The headers of every response. */
export function setCommonHeaders(
  request: IncomingMessage,
  response: ServerResponse,
  {
    requestId,
    corsOrigins,
  }: { readonly requestId: string; readonly corsOrigins: readonly string[] | undefined },
): void {
  response.setHeader('x-request-id', requestId);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('x-frame-options', 'DENY');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('cache-control', 'no-store');
  const { origin } = request.headers;
  if (origin === undefined || corsOrigins?.includes(origin) !== true) return;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('vary', 'origin');
  response.setHeader('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE');
  response.setHeader(
    'access-control-allow-headers',
    'authorization, content-type, idempotency-key, last-event-id, x-correlation-id, x-tenant-id',
  );
  response.setHeader(
    'access-control-expose-headers',
    'retry-after, x-correlation-id, x-request-id, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset',
  );
}
