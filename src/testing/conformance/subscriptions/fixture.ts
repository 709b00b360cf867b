// The fixture of the suite, and helpers of its cases.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { hasCode } from '../../../foundation/error.ts';
import { toPosition, type Position } from '../../../store/position.ts';
import type { NewDeadLetter } from '../../../subscriptions/dead-letter.ts';
import type {
  Fence,
  SubscriptionCapabilities,
  SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';

/** Provides storages of the adapter under test. */
export interface SubscriptionStorageFixture<Transaction> {
  /** The capabilities of the adapter; cases that need others are skipped. */
  readonly capabilities: SubscriptionCapabilities;
  /** Opens a storage; it may return the same instance each time. The fixture closes the storage. */
  open(): Promise<SubscriptionStorage<Transaction>>;
  /** Opens a second connection to the same data, like another process (`crossProcess`). */
  second?(): Promise<SubscriptionStorage<Transaction>>;
  /** Replaces the JSON texts of all rows of a subscription without the storage. */
  damage?(subscription: string, json: string): Promise<void>;
  /** Effects that a case can count (`transactions`). */
  readonly effects?: {
    write(transaction: Transaction, key: string): Promise<void>;
    count(key: string): Promise<number>;
  };
}

export interface StorageCase {
  /** The topic, followed by a sentence. */
  readonly name: string;
  /** Why the case is skipped: `needs transactions`. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

export interface StorageContext {
  readonly storage: SubscriptionStorage;
  readonly fixture: SubscriptionStorageFixture<unknown>;
}

type CaseBody = (context: StorageContext) => Promise<void>;

export type StorageCases = Readonly<
  Record<
    string,
    CaseBody | { readonly needs: keyof SubscriptionCapabilities; readonly run: CaseBody }
  >
>;

export const leaseMs = 600_000;
export const at = (sequence: number): Position => toPosition(sequence);

export function newName(): string {
  return `sub:conformance:c${randomUUID().replaceAll('-', '')}:v1`;
}

/** Opens a subscription with one shard that an owner has acquired. */
export async function acquireShard(
  storage: SubscriptionStorage,
  subscription = newName(),
  shard = 0,
): Promise<Fence> {
  await storage.checkpoints.open(subscription, shard + 1);
  const lease = await storage.leases.acquire({ subscription, shard }, 'owner', leaseMs);
  assert.equal(lease.kind, 'acquired');
  return { subscription, shard, token: lease.kind === 'acquired' ? lease.token : 0 };
}

/** Lets another process take over the shard. */
export async function takeOverShard(storage: SubscriptionStorage, fence: Fence): Promise<Fence> {
  await storage.leases.release(fence);
  const lease = await storage.leases.acquire(fence, 'other', leaseMs);
  return { ...fence, token: lease.kind === 'acquired' ? lease.token : 0 };
}

export async function assertLost(write: () => Promise<unknown>): Promise<void> {
  await assert.rejects(write, (error) => hasCode(error, 'LEASE_LOST'));
}

export function newLetter(fence: Fence, fields: Partial<NewDeadLetter> = {}): NewDeadLetter {
  return {
    id: randomUUID(),
    eventId: randomUUID(),
    eventType: 'account.credited.v1',
    aggregateId: 'a-1',
    payload: { text: 'Zoë "quoted" \n 🙂', amount: 12.5, none: null },
    error: "it's broken\n",
    cause: {
      name: 'TypeError',
      code: 'ERR_BROKEN',
      stack: '    at send (mail.ts:1:2)',
      fingerprint: '0123456789ab',
    },
    attempts: 6,
    createdAt: '2025-09-30T10:00:00.123Z',
    handler: fence.subscription,
    shard: fence.shard,
    tenant: 'core',
    correlationId: 'request-1',
    stream: 'banking.account.v1-core-a-1',
    revision: 3,
    position: at(7),
    parked: false,
    history: [{ at: '2025-09-30T10:00:00.000Z', error: 'away' }],
    ...fields,
  };
}
