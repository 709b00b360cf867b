import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { systemClock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { silentObserver } from '../foundation/observer.ts';
import type { EventStore } from './event-store.ts';
import { followSystemStream } from './system-stream.ts';

const name = '$names';

async function openNames(store: EventStore) {
  const names: unknown[] = [];
  const corrupt = Promise.withResolvers<void>();
  const stream = await followSystemStream(store, {
    stream: name,
    clock: systemClock,
    observer: silentObserver,
    apply({ type, payload }) {
      if (type !== '$name-added') throw new MillraceError('STORE_CORRUPT', `unknown type ${type}`);
      names.push(payload);
    },
    onLost: corrupt.resolve,
  });
  return { names, stream, corrupt: corrupt.promise };
}

test('concurrent writers each decide on the result of the other', async () => {
  await using db = openMemory();
  const all = await Promise.all([openNames(db.store), openNames(db.store), openNames(db.store)]);
  await Promise.all(
    all.map(({ names, stream }) =>
      stream.write(() => ({ type: '$name-added', payload: names.length })),
    ),
  );
  for (const { names, stream } of all) {
    await stream.catchUp();
    assert.deepEqual(names, [0, 1, 2]);
    await stream[Symbol.asyncDispose]();
  }
});

test('an unreadable event is reported to the processes that follow, and later writes fail', async () => {
  await using db = openMemory();
  const { names, stream, corrupt } = await openNames(db.store);
  const add = () => stream.write(() => ({ type: '$name-added', payload: 'a' }));
  await add();
  const event = {
    type: '$name-lost',
    eventId: 'e-1',
    occurredAt: new Date(0).toISOString(),
    correlationId: 'e-1',
    tenant: '',
    aggregate: { bc: '', type: '', id: name },
    payload: {},
  };
  await db.store.append(name, [event], { expected: 'any', system: true });
  await corrupt;
  await assert.rejects(add(), (error) => hasCode(error, 'STORE_CORRUPT'));
  assert.deepEqual(names, ['a']);
  await stream[Symbol.asyncDispose]();
});
