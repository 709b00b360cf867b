// The conformance suite of the store through the official client and Millrace's server, on the memory engine.
// Adapter and server behave the same on every engine. adapter-on-engines runs a part of it on SQLite and PostgreSQL, and
// the soak all of it.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import { adapterFixture } from './adapter-fixture.ts';

/** Larger variants of cases that run here; the engines and the soak run them. */
const leftOut = new Set([
  'model: random operations on streams have the results of the model (seed 2)',
  // adapter-foreign has it with more events than one scan of the server takes.
  'subscribe: a filter that matches nothing still reports its progress',
  'subscribe concurrently: delivers every matching event once with a filter',
  'subscribe concurrently: delivers every event once while thirty-two writers share streams',
  'subscribe concurrently: delivers every event once when it repeatedly stops and resumes from its last position',
  'subscribe concurrently: delivers every event once with appends to several streams',
]);

const fixture = adapterFixture({ open: async (options) => openMemory(options) });
after(() => fixture[Symbol.asyncDispose]());

for (const { name, skip, run } of eventStoreConformance(fixture)) {
  if (leftOut.delete(name)) continue;
  test(
    `KurrentDB on the server of Millrace in memory: ${name}`,
    { skip: skip ?? false },
    ({ signal }) => run(signal),
  );
}

test('every case that is left out exists', () => assert.deepEqual([...leftOut], []));
