// Stores of the KurrentDB adapter for the conformance suite, each on a separate stand-in for a real EventStoreDB.

import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import type { EventStore, EventStoreOptions } from '../../src/store/index.ts';
import { kurrentCapabilities } from './adapter-fixture.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn, type StandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import type { AdapterFixture } from './adapter-fixture.ts';

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
    capabilities: { ...kurrentCapabilities, multiStreamAppend: false },
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
