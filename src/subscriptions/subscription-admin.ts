// What operators do with subscriptions and dead letters, from any process: owners notice by themselves.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError, hasCode } from '../foundation/error.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { EventStore } from '../store/event-store.ts';
import {
  startPosition,
  toPosition,
  toSequence,
  parsePosition,
  type Position,
} from '../store/position.ts';
import { positionBefore } from './rules/position-before.ts';
import type { DeadLetter, DeadLetterFilter } from './dead-letter.ts';
import type { SubscriptionState, SubscriptionStorage } from './subscription-storage.ts';

export interface SubscriptionLag {
  /** Everything up to here is done. */
  readonly position: Position;
  readonly head: Position;
  /** How far the head is ahead, counted in events of any kind; 0 when none of them is for it. */
  readonly behind: number;
  /** The age of the oldest event that is not done; 0 when there is none. */
  readonly seconds: number;
}

export interface SubscriptionAdmin {
  list(): Promise<readonly SubscriptionState[]>;
  pause(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  /** While a process works on it, and it is not paused: `SUBSCRIPTION_RUNNING`. */
  reset(name: string, options?: ResetOptions): Promise<void>;
  /** Behind the last event that was recorded before this time. */
  positionBefore(atMs: number): Promise<Position>;
  lag(name: string): Promise<SubscriptionLag>;
  /** Of the last event that matches, up to a position. */
  lastPosition(upTo: Position | undefined, filter?: EventFilter): Promise<Position>;
  /** Asks the owner to try it again; it is `replayed` when that succeeded. */
  replay(id: string, request: { readonly by: string }): Promise<void>;
  /** All pending ones that match; an empty filter is all of them. Returns how many. */
  replayAll(filter: DeadLetterFilter, request: { readonly by: string }): Promise<number>;
  discard(id: string, request: DiscardRequest): Promise<void>;
  /** All pending ones that match; an empty filter is all of them. Returns how many. */
  discardAll(filter: DeadLetterFilter, request: DiscardRequest): Promise<number>;
  letter(id: string): Promise<DeadLetter>;
  note(id: string, notes: string): Promise<void>;
}

export interface ResetOptions {
  /** Default: the start. */
  readonly to?: Position | undefined;
  readonly by?: string | undefined;
  /** Those who work on it lose it, and begin again from there. */
  readonly evenIfRunning?: boolean | undefined;
}

interface DiscardRequest {
  readonly by: string;
  readonly reason: string;
}

/**
 * The operator's side of subscriptions.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { subscriptionAdmin } from 'millrace/subscriptions';
 *
 * const store = memoryEventStore();
 * const admin = subscriptionAdmin(store, { storage: store.subscriptions });
 * for (const { subscription, paused } of await admin.list()) console.log(subscription, paused);
 */
export function subscriptionAdmin(
  store: EventStore,
  options: { readonly storage: SubscriptionStorage; readonly clock?: Clock | undefined },
): SubscriptionAdmin {
  const { clock = systemClock } = options;
  const { checkpoints, deadLetters, leases } = options.storage;

  const known = (isKnown: boolean, name: string): void => {
    if (isKnown) return;
    throw new MillraceError('SUBSCRIPTION_UNKNOWN', `there is no subscription '${name}'`, {
      details: { name },
    });
  };

  const letter = async (id: string): Promise<DeadLetter> => {
    const found = await deadLetters.get(id);
    if (found !== undefined) return found;
    throw new MillraceError('DEAD_LETTER_UNKNOWN', `there is no dead letter '${id}'`, {
      details: { id },
    });
  };

  const changed = async (count: number, id: string): Promise<void> => {
    if (count > 0) return;
    const { status } = await letter(id);
    throw new MillraceError('DEAD_LETTER_CLOSED', `dead letter '${id}' was ${status} already`, {
      details: { id, status },
    });
  };

  const refuseIfRunning = async (name: string): Promise<void> => {
    if ((await checkpoints.get(name))?.paused !== false) return;
    const held = (await leases.list(name)).filter(({ remainingMs }) => remainingMs > 0);
    if (held.length === 0) return;
    const owners = [...new Set(held.map(({ owner }) => owner))].toSorted();
    throw new MillraceError('SUBSCRIPTION_RUNNING', `${name} is running: pause it first`, {
      details: { name, owners },
    });
  };

  return {
    list: () => checkpoints.list(),
    pause: async (name) => known(await checkpoints.setPaused(name, true), name),
    resume: async (name) => known(await checkpoints.setPaused(name, false), name),
    positionBefore: (atMs) => positionBefore(store, atMs),
    async reset(name, { to = startPosition, by = 'unknown', evenIfRunning = false } = {}) {
      if (!evenIfRunning) await refuseIfRunning(name);
      known(await checkpoints.reset(name, to, { by, atMs: clock.now() }), name);
    },
    async lag(name) {
      const state = await checkpoints.get(name);
      known(state !== undefined, name);
      const positions = (state?.positions ?? []).map((each) => each ?? startPosition);
      const position = positions.toSorted()[0] ?? startPosition;
      const head = await store.head();
      const filter = state?.filter;
      const ahead = { after: position, limit: 1, ...(filter === undefined ? {} : { filter }) };
      const [next] = await store.readAll(ahead).toArray();
      return {
        position,
        head,
        behind: next === undefined ? 0 : Math.max(0, toSequence(head) - toSequence(position)),
        seconds:
          next === undefined ? 0 : Math.max(0, clock.now() - Date.parse(next.recordedAt)) / 1_000,
      };
    },
    async lastPosition(upTo, filter) {
      const [last] = await store
        .readAll({
          direction: 'backwards',
          limit: 1,
          ...(upTo === undefined ? {} : { after: toPosition(toSequence(upTo) + 1) }),
          ...(filter === undefined ? {} : { filter }),
        })
        .toArray();
      return last?.position ?? startPosition;
    },
    letter,
    replay: async (id, { by }) =>
      changed(await deadLetters.replay({ ids: [id] }, { by, atMs: clock.now() }), id),
    replayAll: (filter, { by }) => deadLetters.replay(filter, { by, atMs: clock.now() }),
    discard: async (id, { by, reason }) =>
      changed(await deadLetters.discard({ ids: [id] }, { by, reason, atMs: clock.now() }), id),
    discardAll: (filter, { by, reason }) =>
      deadLetters.discard(filter, { by, reason, atMs: clock.now() }),
    async note(id, notes) {
      if (!(await deadLetters.note(id, notes))) await letter(id);
    },
  };
}

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
