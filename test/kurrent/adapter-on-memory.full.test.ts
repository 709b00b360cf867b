// The conformance suite of the store through the official client and our own server, on the memory engine, because
// adapter and server behave the same on every engine. adapter-on-engines runs a part of it on SQLite and PostgreSQL, and
// the soak all of it.

import { after, test } from 'node:test';
import { memoryEventStore } from '../../src/engines/memory/index.ts';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import { adapterFixture } from './adapter-fixture.ts';

/** Larger variants of cases that run here; the engines and the soak run them. */
const leftOut = new Set([
  'model: random work on streams gives what the model says (seed 2)',
  // adapter-foreign tests this with more events than one scan of the server.
  'subscribe: a filter that matches nothing still tells how far it got',
  'subscribe concurrently: nor through a filter',
  'subscribe concurrently: nor while thirty-two writers append to streams that they share',
  'subscribe concurrently: nor when it is stopped and goes on from its last position again and again',
  'subscribe concurrently: nor when appends go to several streams at once',
]);

const fixture = adapterFixture({ open: async (options) => memoryEventStore(options) });
after(() => fixture[Symbol.asyncDispose]());

for (const { name, skip, run } of eventStoreConformance(fixture)) {
  if (leftOut.has(name)) continue;
  test(`KurrentDB on our own server in memory: ${name}`, { skip: skip ?? false }, ({ signal }) =>
    run(signal),
  );
}
