// An answer onto the wire: JSON at once, a stream at the client's pace.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Answer } from '../../platform/modules/route.ts';

export async function writeAnswer(
  response: ServerResponse,
  answer: Answer,
  { isHead, signal }: { readonly isHead: boolean; readonly signal: AbortSignal },
): Promise<void> {
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if ('stream' in answer) {
    response.writeHead(answer.status ?? 200, { 'content-type': answer.contentType });
    if (!isHead) await writeStream(response, answer.stream, signal);
    response.end();
    return;
  }
  if (answer.body === undefined) {
    response.writeHead(answer.status ?? 204).end();
    return;
  }
  const text = JSON.stringify(answer.body);
  response
    .writeHead(answer.status ?? 200, {
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
  // The headers now: the first part may be long in coming.
  response.flushHeaders();
  try {
    for await (const part of stream) {
      if (signal.aborted) return;
      if (!response.write(part)) await once(response, 'drain', { signal });
    }
  } catch (error) {
    // Somebody went away, or the server stops: there is nobody to tell.
    if (!signal.aborted) throw error;
  }
}
