// What the cases of stream mode are made of.

import assert from 'node:assert/strict';
import { leaseMs, newMessage, statusOf } from './ledger-fixture.conformance.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import type { EnqueueOutboxProps } from './outbox-message.ts';
import type { LaneBatch, LaneChange, LaneClaim } from './outbox-streams.ts';

export const type = 'kafka:payments';
export const bytesMax = 1_000_000;

export async function declared(ledger: OutboxLedger, lanes = 1): Promise<void> {
  assert.equal(await ledger.streams.declare(type, { lanes }), true);
}

export async function acquire(
  ledger: OutboxLedger,
  workerId = 'relay',
  options: { readonly leaseMs?: number; readonly giveBack?: readonly LaneClaim[] } = {},
): Promise<readonly LaneClaim[]> {
  const request = { workerId, integrationTypes: [type], leaseMs, giveBack: [], ...options };
  return ledger.streams.acquire(request);
}

export async function only(ledger: OutboxLedger): Promise<LaneClaim> {
  const [lane, ...more] = await acquire(ledger);
  assert.ok(lane !== undefined);
  assert.deepEqual(more, []);
  return lane;
}

export async function fetchFrom(
  ledger: OutboxLedger,
  lanes: readonly LaneClaim[],
  limit = 100,
  bytes = bytesMax,
): Promise<readonly LaneBatch[]> {
  const asked = lanes.map((claim) => ({ claim, limit }));
  return (await ledger.streams.exchange([], { lanes: asked, bytesMax: bytes, leaseMs })).batches;
}

export function numbers(batches: readonly LaneBatch[]): readonly unknown[] {
  return batches.flatMap(({ items }) => items.map((item) => item.message.payload['n']));
}

export function message(n: number, fields: Partial<EnqueueOutboxProps> = {}): EnqueueOutboxProps {
  return newMessage({ integrationType: type, payload: { n }, ...fields });
}

export async function enqueue(
  ledger: OutboxLedger,
  ...items: readonly EnqueueOutboxProps[]
): Promise<readonly string[]> {
  return (await ledger.enqueueMany(items)).map(({ id }) => id);
}

export async function settle(
  ledger: OutboxLedger,
  batch: LaneBatch,
  change: (n: unknown, position: number) => LaneChange | undefined = () => undefined,
): Promise<string | undefined> {
  const changes = batch.items.flatMap(({ message: { payload }, position, isParked }) => {
    const told = change(payload['n'], position);
    if (told === undefined) return isParked ? [{ kind: 'sent' as const, position }] : [];
    return [told];
  });
  const upTo = batch.items.findLast(({ isParked }) => !isParked)?.position;
  const { claim, number } = batch;
  const { settled } = await ledger.streams.exchange([{ claim, number, upTo, changes }]);
  return settled[0];
}

export async function theBatch(
  ledger: OutboxLedger,
  lane: LaneClaim,
  limit = 100,
): Promise<LaneBatch> {
  const [batch] = await fetchFrom(ledger, [lane], limit);
  assert.ok(batch !== undefined, 'there was nothing in the lane');
  return batch;
}

export const failed = (position: number, nextDueAt: Date): LaneChange => ({
  kind: 'failed',
  position,
  error: 'no',
  nextDueAt,
});

export async function statuses(
  ledger: OutboxLedger,
  ids: readonly string[],
): Promise<readonly (string | undefined)[]> {
  return Promise.all(ids.map((id) => statusOf(ledger, id)));
}

export function counted(some: object): object {
  return { PENDING: 0, CLAIMED: 0, SENT: 0, FAILED: 0, DEAD: 0, ...some };
}
