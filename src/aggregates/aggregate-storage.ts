// What command handling keeps beside the events; an event store with room for it brings both.

import type { KeyClaims } from './key-claims.ts';
import type { SnapshotStore } from './snapshot-store.ts';

/** Fits as options of `createCommandHandler`: `createCommandHandler(store, account, store)`. */
export interface AggregateStorage {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
}
