// The body of a request: its first bytes, which decide how it is used, and the rest as a stream.

import type { IncomingMessage } from 'node:http';
import { ntfyError } from '../../topics/ntfy-problems.ts';
import type { TopicBody } from '../../topics/topics.ts';

/** Reads up to `limit` bytes; `isCut` if the body has at least that many. */
export async function peekBody(request: IncomingMessage, limit: number): Promise<TopicBody> {
  const chunks = await firstChunks(request, limit);
  const all = Buffer.concat(chunks);
  const length = Number(request.headers['content-length']);
  return {
    head: all.subarray(0, limit),
    isCut: all.length >= limit,
    contentLength: Number.isSafeInteger(length) ? length : undefined,
    async *all() {
      yield all;
      // A caller that stops reading must still be able to respond.
      const rest = request.iterator({ destroyOnReturn: false });
      if (!request.readableEnded) yield* rest as AsyncIterable<Uint8Array>;
    },
  };
}

/** A body that is in memory, such as the message inside a JSON document. */
export function bodyOf(content: Buffer, limit: number): TopicBody {
  return {
    head: content.subarray(0, limit),
    isCut: content.length >= limit,
    contentLength: content.length,
    async *all() {
      yield content;
    },
  };
}

function firstChunks(request: IncomingMessage, limit: number): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const done = (): void => {
      request.off('data', onData).off('end', done).off('error', onBreak).off('close', onBreak);
      resolve(chunks);
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      length += chunk.length;
      if (length < limit) return;
      request.pause();
      done();
    };
    const onBreak = (): void => reject(ntfyError('invalid'));
    request.on('data', onData).once('end', done).once('error', onBreak).once('close', onBreak);
  });
}
