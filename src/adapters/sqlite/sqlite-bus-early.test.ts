import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineEntry } from '../../bus/bus-engine.ts';
import { createEarlyReaders } from './sqlite-bus-early.ts';

const entry = (subject: string): EngineEntry => ({ subject, id: subject, data: new Uint8Array() });
const early = { isEarly: true };
const late = { isEarly: false };

function reader(readers: ReturnType<typeof createEarlyReaders>, filter = 'a.>', behind = 0) {
  const given: string[] = [];
  const give = (entries: readonly EngineEntry[]): void => {
    given.push(...entries.map(({ subject }) => subject));
  };
  return { given, ...readers.join(filter, give, behind) };
}

test('a reader is told of what its filter takes', () => {
  const readers = createEarlyReaders();
  const { given } = reader(readers);
  readers.append([entry('a.1'), entry('b.1'), entry('a.2')], early).tell();
  readers.append([entry('b.2')], early).tell();
  assert.deepEqual(given, ['a.1', 'a.2']);
});

test('behind one that it was not told of, it is told of none until it has read them all', () => {
  const readers = createEarlyReaders();
  const { given, reached } = reader(readers);
  const first = readers.append([entry('a.1')], late);
  const second = readers.append([entry('a.2')], early);
  second.tell();
  first.settled(7);
  second.settled(8);
  reached(7);
  const third = readers.append([entry('a.3')], early);
  third.tell();
  reached(8);
  const fourth = readers.append([entry('a.4')], early);
  fourth.tell();
  assert.deepEqual(given, [], 'the third is under way');
  third.settled(9);
  fourth.settled(10);
  reached(10);
  readers.append([entry('a.5')], early).tell();
  readers.append([entry('a.6')], early).tell();
  assert.deepEqual(given, ['a.5', 'a.6']);
});

test('what failed is waited for by nobody', () => {
  const readers = createEarlyReaders();
  const { given } = reader(readers);
  const failed = readers.append([entry('a.1')], late);
  failed.settled(0);
  failed.settled(0);
  readers.append([entry('a.2')], early).tell();
  assert.deepEqual(given, ['a.2']);
});

test('whoever joins was not told of what is under way', () => {
  const readers = createEarlyReaders();
  const before = reader(readers);
  const first = readers.append([entry('a.1')], early);
  first.tell();
  const joined = reader(readers);
  readers.append([entry('a.2')], early).tell();
  assert.deepEqual(before.given, ['a.1', 'a.2']);
  assert.deepEqual(joined.given, []);
  joined.leave();
  before.leave();
  readers.append([entry('a.3')], early).tell();
  assert.deepEqual(before.given, ['a.1', 'a.2']);
});

test('whoever is behind what others wrote reads that first', () => {
  const readers = createEarlyReaders();
  const { given, reached } = reader(readers, 'a.>', 5);
  reached(4);
  readers.append([entry('a.1')], early).settled(6);
  reached(6);
  readers.behind(9);
  readers.append([entry('a.2')], early).settled(10);
  assert.deepEqual(given, []);
  reached(10);
  readers.append([entry('a.3')], early).tell();
  assert.deepEqual(given, ['a.3']);
});
