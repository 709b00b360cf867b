// All roles in the memory of one process, for unit tests.

import { memoryKeyClaims, type KeyClaims } from '../../aggregates/idempotency.ts';
import { memorySnapshots, type SnapshotStore } from '../../aggregates/snapshot-store.ts';
import { MillraceError } from '../../foundation/error.ts';
import { lazyRoles } from '../../foundation/lazy-roles.ts';
import type { OutboxLedgerOptions } from '../../outbox/create-outbox-ledger.ts';
import { memoryOutboxLedger } from '../../outbox/memory-outbox-ledger.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { planInline, type InlineRoles } from '../../projections/inline-appends.ts';
import { memoryReadModels } from '../../projections/memory/read-models.ts';
import { memoryVersions } from '../../projections/memory/versions.ts';
import type { ReadModelRoles } from '../../projections/read-model-store.ts';
import { memorySagaIndex, type SagaIndex } from '../../reactors/saga-index.ts';
import type { EventStoreOptions } from '../../store/create-event-store.ts';
import {
  memorySubscriptionStorage,
  type MemoryTransaction,
} from '../../subscriptions/memory/storage.ts';
import type { SubscriptionRoles } from '../../subscriptions/subscription-storage.ts';
import { memoryTaskEngine } from '../../tasks/memory-task-engine.ts';
import type { TaskEngine } from '../../tasks/task-engine.ts';
import { memoryTraceIndex, type TraceIndex } from '../../traces/trace-index.ts';
import type { WorkQueue } from '../../work/work-queue.ts';
import { sqliteWorkQueue } from '../sqlite/queue/queue.ts';
import { memoryEventStore } from './memory-event-store.ts';

interface MemoryRoles
  extends InlineRoles, ReadModelRoles, Omit<SubscriptionRoles<MemoryTransaction>, 'leases'> {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
  readonly sagas: SagaIndex;
  readonly traces: TraceIndex;
  readonly outbox: OutboxLedger<never>;
  readonly tasks: TaskEngine;
  readonly queue: WorkQueue;
}

export interface MemoryEngine extends MemoryRoles, AsyncDisposable {}

/**
 * Opens all roles in memory. They are lost with the process.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 *
 * await using db = openMemory();
 * console.log(await db.store.streamInfo('banking.currency.v1-core-USD')); // undefined
 */
export function openMemory(options: EventStoreOptions & OutboxLedgerOptions = {}): MemoryEngine {
  const { clock } = options;
  const handle: MemoryEngine = lazyRoles<MemoryRoles>(
    {
      store: () => memoryEventStore(handle.readModels, options),
      subscriptions: () => memorySubscriptionStorage({ clock }),
      snapshots: memorySnapshots,
      keyClaims: memoryKeyClaims,
      readModels: () => memoryReadModels({ clock }),
      readModelVersions: memoryVersions,
      inlineAppends: planInline,
      // The index needs no upkeep: it is lost only together with the events.
      sagas: () => ({ ...memorySagaIndex(), upkeep: undefined }),
      traces: memoryTraceIndex,
      outbox: () => memoryOutboxLedger(options),
      tasks: () => memoryTaskEngine({ clock }),
      queue: () => sqliteWorkQueue('memory:', options),
    },
    {
      close: async () => undefined,
      closedError: () => new MillraceError('STORE_CLOSED', 'the engine is closed'),
    },
  );
  return handle;
}
