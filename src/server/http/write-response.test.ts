import assert from 'node:assert/strict';
import { ServerResponse, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { nextTurn } from '../../foundation/async/next-turn.ts';
import { partChars, writeResponse } from './write-response.ts';

/** A response whose client reads a part only when `read` is called. */
function unreadResponse() {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const parts: string[] = [];
  let whenRead: (() => void) | undefined;
  const socket = new Writable({
    highWaterMark: 1,
    decodeStrings: false,
    write(part: string | Buffer, _encoding, done) {
      // A part that ends within a character would not survive this.
      parts.push(Buffer.from(part).toString());
      whenRead = done;
    },
  });
  response.assignSocket(socket as unknown as Socket);
  // As a server does.
  socket.on('drain', () => response.emit('drain'));
  const read = async (): Promise<void> => {
    const done = whenRead;
    whenRead = undefined;
    done?.();
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  };
  return { response, socket, parts, read };
}

function recordedMemory() {
  const held: number[] = [];
  return { held, memory: { hold: (bytes: number) => void held.push(bytes) } };
}

const bodyOf = (parts: readonly string[]): string =>
  parts.join('').replace(/^HTTP[^{]*(?:\r\n[0-9a-f]+\r\n)?/, '');

test('a client that reads a long text part by part is seen to read each of them', async () => {
  const { response, parts, read } = unreadResponse();
  const { held, memory } = recordedMemory();
  const json = JSON.stringify({ text: '😀'.repeat((3 / 2) * partChars) });
  const signal = new AbortController().signal;
  const writing = writeResponse(response, { json }, { isHead: false, signal, memory });
  await nextTurn();
  assert.deepEqual(held, [2 * json.length]);
  for (let part = 0; part < 3; part += 1) {
    const before = held.length;
    await read();
    assert.ok(held.length <= before + 1, 'no part is written before the last one was read');
  }
  for (let part = 0; part < 5; part += 1) await read();
  assert.equal(held.length, 4, 'one part is left for a second');
  await writing;
  assert.deepEqual([...new Set(held)], [2 * json.length], 'the whole text stays in memory');
  assert.equal(bodyOf(parts), json);
});

test('a page whose client is disconnected as too slow does not end as if it was complete', async () => {
  const { response, parts, read } = unreadResponse();
  const { memory } = recordedMemory();
  const leaving = new AbortController();
  const json = JSON.stringify('x'.repeat(4 * partChars));
  const writing = writeResponse(
    response,
    { json },
    { isHead: false, signal: leaving.signal, memory },
  );
  await read();
  leaving.abort();
  await writing;
  assert.equal(response.destroyed, true);
  assert.ok(bodyOf(parts).length < json.length);
});
