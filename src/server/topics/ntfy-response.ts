// Responses in ntfy's format: JSON, problems, and attachments.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { hasCode } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import { problemOf, ntfyError, type NtfyProblem } from '../../topics/ntfy-problems.ts';
import type { Topics } from '../../topics/topics.ts';

const drainedBytesMax = 16 * 1_048_576;

/** Part of every response: pages of any origin may call the API. */
export const anyOrigin = ['Access-Control-Allow-Origin', '*'] as const;

export function sendJson(
  response: ServerResponse,
  json: string,
  options: {
    readonly status?: number | undefined;
    readonly headers?: readonly string[] | undefined;
  } = {},
): void {
  const { status = 200, headers = anyOrigin } = options;
  const body = Buffer.from(`${json}\n`);
  response.writeHead(status, [
    ...headers,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.length),
  ]);
  response.end(body);
}

/** Logs unexpected errors; the client gets no details of them. */
export function loggedProblem(error: unknown, observer: Observer): NtfyProblem {
  if (!hasCode(error, 'NOTIFY_REJECTED')) {
    observer.log?.error({ err: error }, 'topic request failed');
  }
  return problemOf(error);
}

export function sendProblem(
  request: IncomingMessage,
  response: ServerResponse,
  problem: NtfyProblem,
): void {
  // The response has begun: a broken connection shows the client that it is incomplete.
  if (response.headersSent || response.destroyed) return void response.destroy();
  // Without 'Connection: close', which would close the socket and lose the response while the client still sends.
  const { http: status } = problem;
  if (request.method === 'HEAD') response.writeHead(status, [...anyOrigin]).end();
  else sendJson(response, JSON.stringify(problem), { status });
  if (!request.complete) drain(request);
}

/** Reads on, up to a limit: many clients read the response only after they have sent the whole body. */
function drain(request: IncomingMessage): void {
  let left = drainedBytesMax;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.resume();
}

export async function sendFile(
  topics: Topics,
  id: string,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const found = await topics.attachments?.find(id);
  if (topics.attachments === undefined || found === undefined) throw ntfyError('pageNotFound');
  const head = [...anyOrigin, 'Content-Length', String(found.size)];
  if (request.method === 'HEAD') {
    response.writeHead(200, head).end();
    return;
  }
  // Downloads count against the sender, who may have published the link widely.
  if (!topics.visitors.bytes(found.owner, found.size)) throw ntfyError('bandwidthReached');
  const name = JSON.stringify(found.name).replace(/[^\x20-\x7e]/g, (letter) =>
    Buffer.from(letter).toString('latin1'),
  );
  response.writeHead(200, [
    ...head,
    'Content-Type',
    // An HTML page would run with the origin of this server.
    found.type.replace(/^text\/html/, 'text/plain'),
    'X-Content-Type-Options',
    'nosniff',
    'Content-Disposition',
    `attachment; filename=${name}`,
  ]);
  await pipeline(topics.attachments.read(found), response);
}
