// The store's conformance suite through the official client and our own server, on a store in memory.

import { after, test } from 'node:test';
import { memoryEventStore } from '../../src/adapters/memory/index.ts';
import { runConformance } from '../../src/store/event-store.conformance.ts';
import { adapterFixture } from './adapter-fixture.ts';

const fixture = adapterFixture({ open: async (options) => memoryEventStore(options) });
after(() => fixture[Symbol.asyncDispose]());

runConformance(test, 'the event store in KurrentDB, on our own server over memory', fixture);
