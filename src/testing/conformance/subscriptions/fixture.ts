// What the suite asks of an adapter, and what its cases are made of.

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

/** How the suite gets storages of the adapter under test. */
export interface SubscriptionStorageFixture<Transaction> {
  /** What the adapter claims; a case that needs more is skipped, by name. */
  readonly capabilities: SubscriptionCapabilities;
  /** May be the same one each time; whoever opened it closes it. */
  open(): Promise<SubscriptionStorage<Transaction>>;
  /** One more connection to the same data, as another process would have it (`crossProcess`). */
  second?(): Promise<SubscriptionStorage<Transaction>>;
  /** Effects that can be counted (`transactions`). */
  readonly effects?: {
    write(transaction: Transaction, key: string): Promise<void>;
    count(key: string): Promise<number>;
  };
}

export interface StorageCase {
  /** A sentence; its topic comes first. */
  readonly name: string;
  /** Why this case says nothing about the adapter: `needs transactions`. */
  readonly skip?: string;
  /** Rejects when the adapter does not do what the name says. */
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

/** A subscription of one shard, and its owner. */
export async function owned(
  storage: SubscriptionStorage,
  subscription = newName(),
  shard = 0,
): Promise<Fence> {
  await storage.checkpoints.open(subscription, shard + 1);
  const lease = await storage.leases.acquire({ subscription, shard }, 'owner', leaseMs);
  assert.equal(lease.kind, 'acquired');
  return { subscription, shard, token: lease.kind === 'acquired' ? lease.token : 0 };
}

/** As it is after somebody else took over. */
export async function takenOver(storage: SubscriptionStorage, fence: Fence): Promise<Fence> {
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
