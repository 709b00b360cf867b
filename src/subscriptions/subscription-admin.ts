// Admin actions on subscriptions and dead letters, from any process. Owners see the changes by polling.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError, hasCode } from '../foundation/error.ts';
import type { EventFilter } from '../store/event-filter.ts';
import {
  parsePosition,
  positionDistance,
  startPosition,
  type Position,
} from '../store/position.ts';
import type { PositionUnit } from '../store/store-engine.ts';
import type { DeadLetter, DeadLetterFilter } from './dead-letter.ts';
import type {
  SubscriptionRoles,
  SubscriptionState,
  SubscriptionStorage,
} from './subscription-storage.ts';
import { storageOf } from './with-leases.ts';

export interface SubscriptionLag {
  /** All events up to this position are processed. */
  readonly position: Position;
  readonly head: Position;
  /** Distance to the head, in `unit`; 0 if no event after `position` matches. */
  readonly behind: number;
  /** What `behind` counts: events of any kind, or bytes if the store cannot count events. */
  readonly unit: PositionUnit;
  /** Age of the oldest unprocessed event; 0 if there is none. */
  readonly seconds: number;
}

export interface SubscriptionAdmin {
  list(): Promise<readonly SubscriptionState[]>;
  pause(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  /** Throws `SUBSCRIPTION_RUNNING` while a process runs it and it is not paused. */
  reset(name: string, options?: ResetOptions): Promise<void>;
  /** The position of the last event recorded before this time. */
  positionBefore(atMs: number): Promise<Position>;
  lag(name: string): Promise<SubscriptionLag>;
  /** The position of the last matching event, up to a position. */
  lastPosition(upTo: Position | undefined, filter?: EventFilter): Promise<Position>;
  /** Requests a replay from the owner; the status becomes `replayed` when it succeeds. */
  replay(id: string, request: { readonly by: string }): Promise<void>;
  /** Requests a replay of all pending dead letters that match; an empty filter matches all. Returns their number. */
  replayAll(filter: DeadLetterFilter, request: { readonly by: string }): Promise<number>;
  discard(id: string, request: DiscardRequest): Promise<void>;
  /** Discards all pending dead letters that match; an empty filter matches all. Returns their number. */
  discardAll(filter: DeadLetterFilter, request: DiscardRequest): Promise<number>;
  letter(id: string): Promise<DeadLetter>;
  note(id: string, notes: string): Promise<void>;
}

export interface ResetOptions {
  /** Position of the new checkpoint. Default: the start. */
  readonly to?: Position | undefined;
  readonly by?: string | undefined;
  /** Processes that run it lose their leases and restart from the new position. */
  readonly evenIfRunning?: boolean | undefined;
}

interface DiscardRequest {
  readonly by: string;
  readonly reason: string;
}

/**
 * Admin actions for operators.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { subscriptionAdmin } from 'millrace/subscriptions';
 *
 * await using db = openMemory();
 * const admin = subscriptionAdmin(db);
 * for (const { subscription, paused } of await admin.list()) console.log(subscription, paused);
 */
export function subscriptionAdmin(
  roles: SubscriptionRoles,
  { clock = systemClock }: { readonly clock?: Clock | undefined } = {},
): SubscriptionAdmin {
  const { store } = roles;
  const { checkpoints, deadLetters, leases } = storageOf(roles);

  const checkExists = (exists: boolean, name: string): void => {
    if (exists) return;
    throw new MillraceError('SUBSCRIPTION_UNKNOWN', `unknown subscription '${name}'`, {
      details: { name },
    });
  };

  const letter = async (id: string): Promise<DeadLetter> => {
    const found = await deadLetters.get(id);
    if (found !== undefined) return found;
    throw new MillraceError('DEAD_LETTER_UNKNOWN', `unknown dead letter '${id}'`, {
      details: { id },
    });
  };

  const checkChanged = async (count: number, id: string): Promise<void> => {
    if (count > 0) return;
    const { status } = await letter(id);
    throw new MillraceError('DEAD_LETTER_CLOSED', `dead letter '${id}' is already ${status}`, {
      details: { id, status },
    });
  };

  const rejectIfRunning = async (name: string): Promise<void> => {
    const state = await checkpoints.get(name);
    // Without its checkpoint, no process handles events.
    if (state?.paused !== false || state.lost === true) return;
    const active = (await leases.list(name)).filter(({ remainingMs }) => remainingMs > 0);
    if (active.length === 0) return;
    const owners = [...new Set(active.map(({ owner }) => owner))].toSorted();
    throw new MillraceError('SUBSCRIPTION_RUNNING', `${name} is running: pause it first`, {
      details: { name, owners },
    });
  };

  return {
    list: () => checkpoints.list(),
    pause: async (name) => checkExists(await checkpoints.setPaused(name, true), name),
    resume: async (name) => checkExists(await checkpoints.setPaused(name, false), name),
    positionBefore: (atMs) => store.positionBefore(atMs),
    async reset(name, { to = startPosition, by = 'unknown', evenIfRunning = false } = {}) {
      if (!evenIfRunning) await rejectIfRunning(name);
      checkExists(await checkpoints.reset(name, to, { by, atMs: clock.now() }), name);
    },
    async lag(name) {
      const state = await checkpoints.get(name);
      checkExists(state !== undefined, name);
      const positions = (state?.positions ?? []).map((each) => each ?? startPosition);
      const position = positions.toSorted()[0] ?? startPosition;
      const head = await store.head();
      const filter = state?.filter;
      const [next] = await store.readAll({ after: position, limit: 1, filter }).toArray();
      return {
        position,
        head,
        behind: next === undefined ? 0 : positionDistance(position, head),
        unit: store.capabilities.positionUnit ?? 'events',
        seconds:
          next === undefined ? 0 : Math.max(0, clock.now() - Date.parse(next.recordedAt)) / 1_000,
      };
    },
    async lastPosition(upTo, filter) {
      const [last] = await store
        .readAll({ direction: 'backwards', limit: 1, upTo, filter })
        .toArray();
      return last?.position ?? startPosition;
    },
    letter,
    replay: async (id, { by }) =>
      checkChanged(await deadLetters.replay({ ids: [id] }, { by, atMs: clock.now() }), id),
    replayAll: (filter, { by }) => deadLetters.replay(filter, { by, atMs: clock.now() }),
    discard: async (id, { by, reason }) =>
      checkChanged(await deadLetters.discard({ ids: [id] }, { by, reason, atMs: clock.now() }), id),
    discardAll: (filter, { by, reason }) =>
      deadLetters.discard(filter, { by, reason, atMs: clock.now() }),
    async note(id, notes) {
      if (!(await deadLetters.note(id, notes))) await letter(id);
    },
  };
}

export interface SubscriptionOverview {
  readonly subscription: string;
  /** `lost`: the engine has lost the checkpoint, so the subscription stops until it is reset. */
  readonly state: 'lost' | 'paused' | 'running' | 'stopped';
  readonly shards: number;
  /** Number of processes that run it now. */
  readonly workers: number;
  /** Number of pending dead letters. */
  readonly deadLetters: number;
  /** Number of events that wait for an earlier event of their stream. */
  readonly waiting: number;
}

export async function subscriptionOverview(
  admin: Pick<SubscriptionAdmin, 'list'>,
  storage: SubscriptionStorage,
): Promise<readonly SubscriptionOverview[]> {
  return Promise.all(
    (await admin.list()).map(async ({ subscription, shards, paused, lost = false }) => {
      const workers = await workersOf(storage, subscription);
      const pending = { handler: subscription, status: 'pending' } as const;
      return {
        subscription,
        state: lost ? 'lost' : paused ? 'paused' : workers > 0 ? 'running' : 'stopped',
        shards,
        workers,
        deadLetters: await storage.deadLetters.count(pending),
        waiting: await storage.waiting.count(subscription),
      };
    }),
  );
}

/** Number of processes that run the subscription now. */
export async function workersOf(
  { leases }: Pick<SubscriptionStorage, 'leases'>,
  name: string,
): Promise<number> {
  const active = (await leases.list(name)).filter(({ remainingMs }) => remainingMs > 0);
  return new Set(active.map(({ owner }) => owner)).size;
}

/** Parses `start`, a position, or a date and time; undefined for any other text. */
export async function parseResetPosition(
  text: string,
  admin: Pick<SubscriptionAdmin, 'positionBefore'>,
): Promise<Position | undefined> {
  if (text === 'start') return startPosition;
  try {
    return parsePosition(text);
  } catch (error) {
    if (!hasCode(error, 'POSITION_INVALID')) throw error;
  }
  // Digits alone are more likely a truncated position than a year.
  const atMs = /^\d+$/.test(text) ? Number.NaN : Date.parse(text);
  return Number.isFinite(atMs) ? admin.positionBefore(atMs) : undefined;
}
