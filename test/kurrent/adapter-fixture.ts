// Stores of the KurrentDB adapter for the conformance suite, each on a separate server of ours with a separate store.

import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import type { StoreFixture } from '../../src/testing/conformance/store/event-store.ts';
import type { EventStore, EventStoreOptions, StoreCapabilities } from '../../src/store/index.ts';
import type { LeaseStore } from '../../src/subscriptions/subscription-storage.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';

interface BackingEngine extends AsyncDisposable {
  readonly store: EventStore;
  readonly subscriptions: { readonly leases: LeaseStore };
}

export interface Backing {
  open(options: EventStoreOptions): Promise<BackingEngine>;
}

export const kurrentCapabilities: StoreCapabilities = {
  multiStreamAppend: false,
  callerTransaction: false,
  durable: true,
  crossProcess: true,
  scavenge: false,
  exactTimes: false,
  hiddenEvents: false,
  exactDuplicates: false,
  positionUnit: 'bytes',
};

export interface AdapterFixture extends StoreFixture, AsyncDisposable {}

export function adapterFixture(backing: Backing): AdapterFixture {
  const stack = new AsyncDisposableStack();
  const urls = new WeakMap<EventStore, string>();
  const backings = new Map<string, EventStore>();
  const openAt = async (url: string, options?: EventStoreOptions): Promise<EventStore> => {
    const db = await openKurrent(`${url}&discoveryInterval=1`, options);
    const store = ownedRole(db, 'store');
    urls.set(store, url);
    return store;
  };
  const urlOf = (store: EventStore): string => urls.get(store) ?? '';
  return {
    capabilities: kurrentCapabilities,
    async open(options) {
      const clock = options?.clock === undefined ? {} : { clock: options.clock };
      const db = stack.use(await backing.open({ ...kurrentStoreOptions, ...clock }));
      const server = stack.use(
        await startKurrentServer(db.store, {
          leases: db.subscriptions.leases,
          port: 0,
          // The suite writes system streams, which only administrators may.
          authenticate: () => ({ scopes: ['admin'] }),
          // The largest append of the suite exceeds the default of KurrentDB.
          limits: { appendBytesMax: 64 * 1_048_576 },
        }),
      );
      backings.set(server.url, db.store);
      return openAt(server.url, options);
    },
    async reopen(store, options) {
      await store[Symbol.asyncDispose]();
      return openAt(urlOf(store), options);
    },
    second: (store, options) => openAt(urlOf(store), options),
    async rawContent(store) {
      const content = backings.get(urlOf(store))?.readAll({ filter: { system: true } });
      return JSON.stringify(await content?.toArray());
    },
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync();
    },
  };
}
