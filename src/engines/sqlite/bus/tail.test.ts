import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { nextTurn } from '../../../foundation/async/next-turn.ts';
import { createBusTail } from './tail.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const entry = (subject: string, id: string) => ({ subject, id, data: bytes(id) });
const stored = (sequence: number) => ({ sequence: String(sequence), isDuplicate: false });
const at = { storedAtMs: 5 };
const all = { after: 0, limit: 10 };

test('a reader gets messages of this process from memory and continues after them', () => {
  const tail = createBusTail();
  tail.add([entry('a.b', 'one'), entry('a.c', 'two')], [stored(1), stored(2)], at);
  const read = tail.read('a.*', all);
  assert.deepEqual(
    read?.entries.map(({ subject, sequence, position, storedAtMs }) => [
      subject,
      sequence,
      position,
      storedAtMs,
    ]),
    [
      ['a.b', '1', '1', 5],
      ['a.c', '2', '2', 5],
    ],
  );
  assert.equal(read?.considered, 2);
  assert.deepEqual(tail.read('a.c', { after: 1, limit: 10 })?.entries.length, 1);
  assert.deepEqual(tail.read('x', all), { entries: [], considered: 2 });
  assert.equal(tail.read('a.*', { after: 0, limit: 1 })?.considered, 1);
  // Only the file shows whether another process has written after the last known message.
  assert.equal(tail.read('a.*', { after: 2, limit: 10 }), undefined);
});

test('messages that other processes wrote in between are only in the file', () => {
  const tail = createBusTail();
  tail.add([entry('a', 'one')], [stored(1)], at);
  tail.add([entry('a', 'three')], [stored(3)], at);
  assert.equal(tail.read('a', all), undefined);
  assert.equal(tail.read('a', { after: 1, limit: 10 }), undefined);
  assert.equal(tail.read('a', { after: 2, limit: 10 })?.entries.length, 1);
  assert.equal(tail.last, 3);
});

test('ignores a duplicate', () => {
  const tail = createBusTail();
  tail.add(
    [entry('a', 'one'), entry('a', 'one')],
    [stored(1), { sequence: '1', isDuplicate: true }],
    at,
  );
  assert.equal(tail.read('a', all)?.entries.length, 1);
});

test('keeps a bounded number of messages and bytes, and none after clear()', () => {
  const tail = createBusTail({ entriesMax: 2, bytesMax: 8 });
  for (let seq = 1; seq <= 9; seq += 1) tail.add([entry('a', 'abc')], [stored(seq)], at);
  assert.equal(tail.read('a', { after: 6, limit: 10 }), undefined);
  assert.equal(tail.read('a', { after: 7, limit: 10 })?.entries.length, 2);
  tail.add([entry('a', 'abcdefg')], [stored(10)], at);
  assert.equal(tail.read('a', { after: 8, limit: 10 }), undefined);
  assert.equal(tail.read('a', { after: 9, limit: 10 })?.entries.length, 1);
  tail.clear();
  assert.equal(tail.read('a', { after: 9, limit: 10 }), undefined);
});

test('an evicted message leaves the memory', async () => {
  const tail = createBusTail({ entriesMax: 100, bytesMax: 150_000 });
  const evicted: WeakRef<Uint8Array>[] = [];
  for (let sequence = 1; sequence <= 6; sequence += 1) {
    const data = new Uint8Array(100_000);
    tail.add([{ subject: 'a', id: String(sequence), data }], [stored(sequence)], at);
    evicted.push(new WeakRef(data));
  }
  // The references of this turn keep their messages alive.
  await nextTurn();
  collectGarbage();
  assert.equal(evicted.filter((each) => each.deref() !== undefined).length, 1);
});
