// The tables of the in-memory storage and the functions that its parts share.

import type { EventFilter } from '../../../../store/event-filter.ts';
import type { Position } from '../../../../store/position.ts';
import type { DeadLetter } from '../../../../subscriptions/dead-letter.ts';
import type { LeaseRow } from '../../../../subscriptions/rules/decide-lease.ts';
import {
  leaseLost,
  type Fence,
  type Settlement,
  type SettleResult,
  type ShardKey,
  type WaitingEvent,
} from '../../../../subscriptions/subscription-storage.ts';

export interface MemoryBlockedStream {
  /** Undefined while the stream is parked by a dead letter. */
  due: number | undefined;
  events: WaitingEvent[];
}

interface MemoryShard {
  position: Position | undefined;
  readonly done: Set<Position>;
  readonly blocked: Map<string, MemoryBlockedStream>;
}

export interface MemoryTables {
  readonly subscriptions: Map<
    string,
    { readonly shards: number; paused: boolean; filter: EventFilter | undefined }
  >;
  readonly shards: Map<string, MemoryShard>;
  readonly leases: Map<string, LeaseRow>;
  readonly workers: Map<string, Map<string, number>>;
  readonly letters: Map<string, DeadLetter>;
}

export function createMemoryTables(): MemoryTables {
  return {
    subscriptions: new Map(),
    shards: new Map(),
    leases: new Map(),
    workers: new Map(),
    letters: new Map(),
  };
}

export function keyOf({ subscription, shard }: ShardKey): string {
  return `${subscription}/${shard}`;
}

export function shardIn(tables: MemoryTables, key: ShardKey): MemoryShard {
  let shard = tables.shards.get(keyOf(key));
  if (shard === undefined) {
    shard = { position: undefined, done: new Set(), blocked: new Map() };
    tables.shards.set(keyOf(key), shard);
  }
  return shard;
}

export function checkFence(tables: MemoryTables, fence: Fence): void {
  if (tables.leases.get(keyOf(fence))?.token !== fence.token) throw leaseLost(fence);
}

export function settleIn(tables: MemoryTables, fence: Fence, settlement: Settlement): SettleResult {
  const shard = shardIn(tables, fence);
  if (settlement.kind === 'delivered') {
    const { positions, checkpoint } = settlement;
    if (positions.some((position) => shard.done.has(position))) return 'duplicate';
    for (const position of positions) shard.done.add(position);
    if (checkpoint !== undefined) moveCheckpoint(shard, checkpoint);
    return 'settled';
  }
  const { stream, position, eventId, atMs } = settlement;
  const blockedStream = shard.blocked.get(stream);
  const rest = blockedStream?.events.filter((each) => each.position !== position);
  if (blockedStream === undefined || rest?.length === blockedStream.events.length)
    return 'duplicate';
  blockedStream.events = rest ?? [];
  shard.done.add(position);
  for (const [id, letter] of tables.letters) {
    const isThis = letter.eventId === eventId && letter.handler === fence.subscription;
    if (!isThis || letter.status !== 'pending') continue;
    const replayedAt = new Date(atMs).toISOString();
    tables.letters.set(id, { ...letter, status: 'replayed', replayedAt, replayRequestedAt: null });
  }
  return 'settled';
}

export function moveCheckpoint(shard: MemoryShard, to: Position): void {
  if (shard.position === undefined || shard.position < to) shard.position = to;
}

export function insertWaiting(blockedStream: MemoryBlockedStream, event: WaitingEvent): void {
  if (blockedStream.events.some(({ position }) => position === event.position)) return;
  blockedStream.events.push(event);
  blockedStream.events.sort((a, b) => (a.position < b.position ? -1 : 1));
}
