// Stores of the KurrentDB adapter for the conformance suite, each on a separate stand-in for a real EventStoreDB.

import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import type { EventStore, EventStoreOptions } from '../../src/store/index.ts';
import { kurrentCapabilities } from './adapter-fixture.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn, type StandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import type { AdapterFixture } from './adapter-fixture.ts';

/** Cases that take a second or more each: `npm test` runs them as on 23.10 only, the soak on each preset. */
export const slowOnStandIn: ReadonlySet<string> = new Set([
  'page size in bytes: a page of all events ends with the event that reaches its size, with any filter',
  'filter: finds a match after thousands of other events, in both directions',
  'filter: random filters find the same events as plain JavaScript',
  'filter: a subscription finds the same events as a read with the same filter',
  'subscribe: reads at most a few pages ahead of a slow consumer',
  'subscribe concurrently: delivers every event once while eight writers append',
  'subscribe concurrently: delivers every event once while thirty-two writers share streams',
  'subscribe concurrently: delivers every event once when it repeatedly stops and resumes from its last position',
  'erasure: distinguishes people exactly by their ids',
  'model: random operations on streams have the results of the model (seed 1)',
]);

/** The slowest two: `npm test` runs them on the server of Millrace in memory, the soak also on each preset. */
export const largeOnStandIn: ReadonlySet<string> = new Set([
  'append: stores the largest append completely',
  'subscribe: a filter that matches nothing still reports its progress',
]);

export function standInFixture(preset: Preset): AdapterFixture {
  const stack = new AsyncDisposableStack();
  const servers = new WeakMap<EventStore, StandIn>();
  const openAt = async (server: StandIn, options?: EventStoreOptions): Promise<EventStore> => {
    const store = ownedRole(await openKurrent(server.url, options), 'store');
    servers.set(store, server);
    return store;
  };
  const serverOf = (store: EventStore): StandIn => servers.get(store) as StandIn;
  return {
    capabilities: kurrentCapabilities,
    async open(options) {
      return openAt(stack.use(await startStandIn({ preset, clock: options?.clock })), options);
    },
    async reopen(store, options) {
      await store[Symbol.asyncDispose]();
      return openAt(serverOf(store), options);
    },
    second: (store, options) => openAt(serverOf(store), options),
    async rawContent(store) {
      const all = serverOf(store).store.readAll({ filter: { system: true } });
      return JSON.stringify(await all.toArray());
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
