// An attachment to whoever has its address.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { refused } from '../../notify/ntfy-problems.ts';
import type { Topics } from '../../notify/topics.ts';
import { anyOrigin } from './ntfy-answer.ts';

export async function answerFile(
  topics: Topics,
  id: string,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const found = await topics.attachments?.find(id);
  if (topics.attachments === undefined || found === undefined) throw refused('pageNotFound');
  const head = [...anyOrigin, 'Content-Length', String(found.size)];
  if (request.method === 'HEAD') {
    response.writeHead(200, head).end();
    return;
  }
  // It counts for who sent it: one upload and a thousand downloads is the sender's doing.
  if (!topics.visitors.bytes(found.owner, found.size)) throw refused('bandwidthReached');
  const name = JSON.stringify(found.name).replace(/[^\x20-\x7e]/g, (letter) =>
    Buffer.from(letter).toString('latin1'),
  );
  response.writeHead(200, [
    ...head,
    'Content-Type',
    // A page would run as if it were this server's own.
    found.type.replace(/^text\/html/, 'text/plain'),
    'X-Content-Type-Options',
    'nosniff',
    'Content-Disposition',
    `attachment; filename=${name}`,
  ]);
  await pipeline(topics.attachments.read(id), response);
}
