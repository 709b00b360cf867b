// How messages look on their way to readers: lines, events, bare texts, frames. Each batch is made once,
// with the framing of its transport, and the same bytes go to everybody.

import type { TopicBatch } from '../../notify/topic-hub.ts';
import type { PlacedMessage } from '../../notify/topic-log.ts';
import { messageFrameJson, messageJson, type TopicMessage } from '../../notify/topic-message.ts';

export type StreamForm = 'json' | 'sse' | 'raw';

export const contentTypes: Readonly<Record<StreamForm, string>> = {
  json: 'application/x-ndjson; charset=utf-8',
  sse: 'text/event-stream; charset=utf-8',
  raw: 'text/plain; charset=utf-8',
};

const eventsWithoutName = new Set(['message', 'message_delete', 'message_clear']);

export function encodeMessage(form: StreamForm, message: TopicMessage): string {
  if (form === 'json') return `${messageJson(message)}\n`;
  if (form === 'raw') {
    return message.event === 'message'
      ? `${(message.message ?? '').replaceAll('\n', ' ')}\n`
      : '\n';
  }
  const data = `data: ${messageJson(message)}\n\n`;
  return eventsWithoutName.has(message.event) ? data : `event: ${message.event}\n${data}`;
}

/** A chunk of HTTP/1.1 around it. */
export function chunkOf(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const head = `${length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(head.length + length + 2);
  chunk.write(head, 0, 'latin1');
  chunk.write(text, head.length);
  chunk.write('\r\n', head.length + length, 'latin1');
  return chunk;
}

export function streamBatch(form: StreamForm, batch: TopicBatch, isChunked: boolean): Buffer {
  return batch.once(isChunked ? form : `${form} plain`, (messages) => {
    const text = joined(messages, (message) => encodeMessage(form, message));
    return isChunked ? chunkOf(text) : Buffer.from(text);
  });
}

function joined(
  messages: readonly PlacedMessage[],
  encode: (message: TopicMessage) => string,
): string {
  let text = '';
  for (const { message } of messages) text += encode(message);
  return text;
}

/** A text frame from the server: not masked, not parted. */
export function frameOf(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const headLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headLength + length);
  frame[0] = 0x81;
  if (headLength === 2) frame[1] = length;
  else if (headLength === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, headLength);
  return frame;
}

export function frameBatch(batch: TopicBatch): Buffer {
  return batch.once('ws', (messages) =>
    Buffer.concat(messages.map(({ message }) => frameOf(`${messageFrameJson(message)}\n`))),
  );
}
