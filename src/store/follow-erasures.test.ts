import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { newEvent } from '../testing/conformance/store/fixture.ts';
import { compileFilter, matchesRow, type EventFilter } from './event-filter.ts';
import { followErasures } from './follow-erasures.ts';

const filters: readonly EventFilter[] = [
  {},
  { types: ['user.renamed.v1'] },
  { typePrefixes: ['user.'] },
  { types: ['user.renamed.v1'], typePrefixes: ['user.'], tenant: 'core' },
  { typePattern: '^user', category: 'crm.user.v1', streamPrefixes: ['crm.'] },
  { types: ['user.renamed.v1'], streamPattern: 'core-1$' },
];

test('the filter of a subscription also matches the erasures, whatever its parts', async () => {
  await using db = openMemory();
  const headers = { dataSubject: 'zelda' };
  await db.store.append('crm.user.v1-core-1', [newEvent({ type: 'user.renamed.v1', headers })]);
  await db.store.append('crm.order.v1-core-1', [newEvent({ type: 'order.placed.v1' })]);
  await db.store.setStreamMetadata('crm.order.v1-core-1', { maxCount: 5 });
  await db.store.forget('zelda');
  for (const filter of filters) {
    const erasures = followErasures(filter);
    const events = await db.store.readAll({ filter: erasures.filter }).toArray();
    const { own, erasedStreams } = erasures.split(events);
    assert.deepEqual(erasedStreams, ['crm.user.v1-core-1'], JSON.stringify(filter));
    assert.deepEqual(own, await db.store.readAll({ filter }).toArray());
    const original = compileFilter(filter);
    assert.ok(own.every((event) => matchesRow(original, event, event.tenant)));
  }
});

test('forgetting a person again erases the copies again', async () => {
  await using db = openMemory();
  const headers = { dataSubject: 'zelda' };
  await db.store.append('crm.user.v1-core-1', [newEvent({ headers })]);
  const { filter, split } = followErasures({ types: [] });
  for (const times of [1, 2]) {
    await db.store.forget('zelda');
    const events = await db.store.readAll({ filter }).toArray();
    assert.equal(events.length, times);
    assert.deepEqual(split(events).erasedStreams, ['crm.user.v1-core-1']);
  }
});
