// The handle of any engine as the platform sees it: every role is optional.

import type { KeyClaims } from '../../aggregates/idempotency.ts';
import type { SnapshotStore } from '../../aggregates/snapshot-store.ts';
import type { Bus } from '../../bus/bus.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { ReadModelStore } from '../../projections/read-model-store.ts';
import type { ReadModelVersions } from '../../projections/read-model-versions.ts';
import type { SagaIndex } from '../../reactors/saga-index.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { LeaseStore, SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import type { TaskEngine } from '../../tasks/task-engine.ts';
import type { TraceIndex } from '../../traces/trace-index.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';

export interface RoleMap {
  readonly store: EventStore;
  readonly subscriptions: SubscriptionStorage;
  readonly snapshots: SnapshotStore;
  readonly traces: TraceIndex;
  readonly outbox: OutboxLedger;
  readonly readModels: ReadModelStore;
  readonly sagas: SagaIndex;
  readonly leases: LeaseStore;
  readonly keys: KeyStore;
  readonly bus: Bus;
  readonly tasks: TaskEngine;
  readonly queue: WorkQueue;
}

type OptionalRoles = { readonly [Role in keyof RoleMap]?: RoleMap[Role] | undefined };

export interface EngineHandle extends OptionalRoles, AsyncDisposable {
  /** With `snapshots`. */
  readonly keyClaims?: KeyClaims | undefined;
  /** With `subscriptions`. */
  readonly readModelVersions?: ReadModelVersions | undefined;
}
