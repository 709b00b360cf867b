// Writes the response of a route: JSON at once, a stream at the pace of the client.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { RouteResponse } from '../../platform/modules/route.ts';

export async function writeResponse(
  response: ServerResponse,
  reply: RouteResponse,
  { isHead, signal }: { readonly isHead: boolean; readonly signal: AbortSignal },
): Promise<void> {
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
  if ('stream' in reply) {
    response.writeHead(reply.status ?? 200, { 'content-type': reply.contentType });
    if (!isHead) await writeStream(response, reply.stream, signal);
    response.end();
    return;
  }
  if (reply.body === undefined) {
    response.writeHead(reply.status ?? 204).end();
    return;
  }
  const text = JSON.stringify(reply.body);
  response
    .writeHead(reply.status ?? 200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    })
    .end(isHead ? undefined : text);
}

async function writeStream(
  response: ServerResponse,
  stream: AsyncIterable<string | Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  // Send the headers now, because the first part may take long.
  response.flushHeaders();
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
