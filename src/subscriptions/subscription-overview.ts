// All subscriptions at a glance, as the command line and the API show them.

import { hasCode } from '../foundation/error.ts';
import { startPosition, type Position, parsePosition } from '../store/position.ts';
import type { SubscriptionAdmin } from './subscription-admin.ts';
import type { SubscriptionStorage } from './subscription-storage.ts';

export interface SubscriptionOverview {
  readonly subscription: string;
  readonly state: 'paused' | 'running' | 'stopped';
  readonly shards: number;
  /** Processes that work on it now. */
  readonly workers: number;
  /** Pending ones. */
  readonly deadLetters: number;
  /** Events that wait behind one of their own aggregate. */
  readonly waiting: number;
}

export async function subscriptionOverview(
  admin: Pick<SubscriptionAdmin, 'list'>,
  storage: SubscriptionStorage,
): Promise<readonly SubscriptionOverview[]> {
  return Promise.all(
    (await admin.list()).map(async ({ subscription, shards, paused }) => {
      const workers = await workersOf(storage, subscription);
      const pending = { handler: subscription, status: 'pending' } as const;
      return {
        subscription,
        state: paused ? 'paused' : workers > 0 ? 'running' : 'stopped',
        shards,
        workers,
        deadLetters: await storage.deadLetters.count(pending),
        waiting: await storage.waiting.count(subscription),
      };
    }),
  );
}

/** How many processes work on it now. */
export async function workersOf(
  { leases }: Pick<SubscriptionStorage, 'leases'>,
  name: string,
): Promise<number> {
  const held = (await leases.list(name)).filter(({ remainingMs }) => remainingMs > 0);
  return new Set(held.map(({ owner }) => owner)).size;
}

/** `start`, a position, or a date and time; undefined: it is none of them. */
export async function placeOf(
  text: string,
  admin: Pick<SubscriptionAdmin, 'positionBefore'>,
): Promise<Position | undefined> {
  if (text === 'start') return startPosition;
  try {
    return parsePosition(text);
  } catch (error) {
    if (!hasCode(error, 'POSITION_INVALID')) throw error;
  }
  // A year alone is more likely a position that was cut off.
  const atMs = /^\d+$/.test(text) ? Number.NaN : Date.parse(text);
  return Number.isFinite(atMs) ? admin.positionBefore(atMs) : undefined;
}
