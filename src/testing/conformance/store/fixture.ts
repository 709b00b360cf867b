// The fixture of the suite, and helpers of its cases.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { MillraceError } from '../../../foundation/error.ts';
import { createIds } from '../../../foundation/ids.ts';
import type { EventStore, FeedItem, EventStoreOptions } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { StoreCapabilities } from '../../../store/store-engine.ts';

/** Provides stores of the adapter under test. */
export interface StoreFixture {
  /** The capabilities of the adapter; cases that need others are skipped. */
  readonly capabilities: StoreCapabilities;
  /**
   * All stores are on one server, which may contain events of others and has its own clock. Then `open` returns a store
   * whose reads from the start begin at the time of opening.
   */
  readonly isShared?: boolean | undefined;
  /** Opens an empty store, which the suite closes. */
  open(options?: EventStoreOptions): Promise<EventStore>;
  /** Closes the store and opens it again on the same data (`durable`). */
  reopen?(store: EventStore, options?: EventStoreOptions): Promise<EventStore>;
  /** Opens a second connection to the same data, like another process (`crossProcess`). */
  second?(store: EventStore, options?: EventStoreOptions): Promise<EventStore>;
  /** Runs the work in a transaction, and rolls it back when the work rejects (`callerTransaction`). */
  inTransaction?<T>(store: EventStore, work: (transaction: unknown) => Promise<T>): Promise<T>;
  /** Returns all stored data (files, rows) as a string, to show that personal payloads are encrypted. */
  rawContent?(store: EventStore): Promise<string>;
}

export interface CaseContext {
  /** The store that all cases share: each case uses separate streams, categories and subjects. */
  readonly store: EventStore;
  /** Aborted when the case exceeds its time limit; every wait uses this signal. */
  readonly signal: AbortSignal;
  readonly capabilities: StoreCapabilities;
  /** Opens a separate store, for cases that depend on the whole content of a store. */
  readonly open: (options?: EventStoreOptions) => Promise<EventStore>;
  readonly reopen: (store: EventStore) => Promise<EventStore>;
  readonly second: (store: EventStore) => Promise<EventStore>;
  readonly inTransaction: <T>(
    store: EventStore,
    work: (transaction: unknown) => Promise<T>,
  ) => Promise<T>;
  readonly rawContent: (store: EventStore) => Promise<string>;
}

export type CaseBody = (context: CaseContext) => Promise<void>;

/** A capability of the engine, the hook `rawContent` of the fixture, or a server per store that uses the test's clock. */
export type Need = keyof StoreCapabilities | 'rawContent' | 'ownServer';

/** Case bodies by title. */
export type StoreCases = Readonly<Record<string, CaseBody | CaseWithNeeds>>;

export interface CaseWithNeeds {
  readonly needs: readonly Need[];
  readonly run: CaseBody;
}

export function needs(need: Need | readonly Need[], run: CaseBody): CaseWithNeeds {
  return { needs: typeof need === 'string' ? [need] : need, run };
}

const ids = createIds();

/** A unique word that is valid in every name. */
export function unique(prefix: string): string {
  return `${prefix}${ids.next().replaceAll('-', '')}`;
}

export function newStream(category = 'banking.account.v1', tenant = 'core'): string {
  return `${category}-${tenant}-${unique('a')}`;
}

export function newEvent(fields: Partial<DomainEventEnvelope> = {}): DomainEventEnvelope {
  const eventId = ids.next();
  return {
    type: 'account.credited.v1',
    eventId,
    occurredAt: '2025-09-30T10:00:00.000Z',
    correlationId: eventId,
    tenant: 'core',
    aggregate: { bc: 'banking', type: 'account', id: 'a-1' },
    payload: { amount: 1 },
    ...fields,
  };
}

/** Events with numbered payloads. */
export function newEvents(
  count: number,
  fields: Partial<DomainEventEnvelope> = {},
): DomainEventEnvelope[] {
  return Array.from({ length: count }, (_, index) => newEvent({ payload: { index }, ...fields }));
}

export function idsOf(events: readonly { readonly eventId: string }[]): string[] {
  return events.map(({ eventId }) => eventId);
}

/** The ids of the visible events, oldest first. */
export async function storedIds(store: EventStore, stream: string): Promise<string[]> {
  return idsOf(await store.readStream(stream).toArray());
}

export async function conflict(
  work: () => Promise<unknown>,
  { expected, actual }: { readonly expected: unknown; readonly actual: number },
): Promise<MillraceError> {
  const error = await rejectsWith(work, 'VERSION_CONFLICT');
  assert.deepEqual(
    { expected: error.details['expected'], actual: error.details['actual'] },
    { expected, actual },
  );
  return error;
}

/** A subscription that reads only as far as the case requests. */
export interface Follower extends AsyncDisposable {
  /** The events received so far. */
  readonly events: readonly RecordedEvent[];
  next(): Promise<FeedItem>;
  /** Waits for the first item that matches; returns all items up to and including it. */
  until(fits: (item: FeedItem) => boolean): Promise<FeedItem[]>;
  caughtUp(): Promise<FeedItem[]>;
  /** Waits for this number of events and returns them. */
  count(atLeast: number): Promise<readonly RecordedEvent[]>;
  /** Waits for this event and returns all events before it: an event missing then is lost, not late. */
  before(eventId: string): Promise<readonly RecordedEvent[]>;
  /** Waits until the subscription completes without an error. */
  ended(): Promise<void>;
}

export function follow(feed: AsyncIterable<FeedItem>): Follower {
  const iterator = feed[Symbol.asyncIterator]();
  const events: RecordedEvent[] = [];

  const next = async (): Promise<FeedItem> => {
    const { done, value } = await iterator.next();
    assert.ok(done !== true, `the subscription ended after ${events.length} events`);
    if (value.kind === 'events') events.push(...value.events);
    return value;
  };
  const until = async (fits: (item: FeedItem) => boolean): Promise<FeedItem[]> => {
    const items: FeedItem[] = [];
    for (;;) {
      const item = await next();
      items.push(item);
      if (fits(item)) return items;
    }
  };

  return {
    events,
    next,
    until,
    caughtUp: () => until(({ kind }) => kind === 'caughtUp'),
    async count(atLeast) {
      while (events.length < atLeast) await next();
      return events;
    },
    async before(eventId) {
      const indexOf = (): number => events.findLastIndex((event) => event.eventId === eventId);
      while (indexOf() === -1) await next();
      return events.slice(0, indexOf());
    },
    async ended() {
      for (;;) {
        const { done, value } = await iterator.next();
        if (done === true) return;
        if (value.kind === 'events') events.push(...value.events);
      }
    },
    async [Symbol.asyncDispose]() {
      await iterator.return?.();
    },
  };
}

/** Yields to messages and timers, because some engines read synchronously. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function assertAscending(values: readonly (string | number)[]): void {
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    assert.ok(before === undefined || before < value, `${before} does not come before ${value}`);
  }
}

/** Asserts that each stream has all its events from revision 0, in order, once. */
export function assertDense(events: readonly RecordedEvent[]): void {
  const next = new Map<string, number>();
  for (const { stream, revision } of events) {
    assert.equal(revision, next.get(stream) ?? 0, `of stream ${stream}`);
    next.set(stream, revision + 1);
  }
}

/** The only item of a list. */
export function only<T>(items: readonly T[]): T {
  assert.equal(items.length, 1);
  return items[0] as T;
}

/** The last item of a non-empty list. */
export function last<T>(items: readonly T[]): T {
  assert.ok(items.length > 0, 'the list is empty');
  return items.at(-1) as T;
}
