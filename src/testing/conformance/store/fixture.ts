// What the suite asks of an adapter, and what its cases are made of: a context, events, followers.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { MillraceError } from '../../../foundation/error.ts';
import { createIds } from '../../../foundation/ids.ts';
import type { EventStoreOptions } from '../../../store/create-event-store.ts';
import type { EventStore, FeedItem } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { StoreCapabilities } from '../../../store/store-engine.ts';

/** How the suite gets stores of the adapter under test. */
export interface StoreFixture {
  /** What the adapter claims; a case that needs more is skipped, by name. */
  readonly capabilities: StoreCapabilities;
  /** A fresh, empty store; the suite closes it. */
  open(options?: EventStoreOptions): Promise<EventStore>;
  /** Closes the store and opens it again on the same data (`durable`). */
  reopen?(store: EventStore, options?: EventStoreOptions): Promise<EventStore>;
  /** One more connection to the store's data, as another process would have it (`crossProcess`). */
  second?(store: EventStore, options?: EventStoreOptions): Promise<EventStore>;
  /** Commits when the work resolves, rolls back when it rejects (`callerTransaction`). */
  inTransaction?<T>(store: EventStore, work: (transaction: unknown) => Promise<T>): Promise<T>;
  /** All that the engine keeps, as text: files, rows. Shows that sealed payloads are sealed. */
  rawContent?(store: EventStore): Promise<string>;
}

export interface CaseContext {
  /** Shared by all cases: a case uses streams, categories and subjects of its own. */
  readonly store: EventStore;
  /** Fires when the case takes far too long; every wait is bound to it. */
  readonly signal: AbortSignal;
  readonly capabilities: StoreCapabilities;
  /** A store of the case's own, for what depends on all that a store holds. */
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

/** A capability of the engine, or the one hook that no capability speaks of. */
export type Need = keyof StoreCapabilities | 'rawContent';

/** Sentences and what makes them true. */
export type StoreCases = Readonly<Record<string, CaseBody | CaseWithNeeds>>;

export interface CaseWithNeeds {
  readonly needs: readonly Need[];
  readonly run: CaseBody;
}

export function needs(need: Need | readonly Need[], run: CaseBody): CaseWithNeeds {
  return { needs: typeof need === 'string' ? [need] : need, run };
}

const ids = createIds();

/** A word that no other case uses; fit for every name. */
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

/** Events whose payloads number them. */
export function newEvents(
  count: number,
  fields: Partial<DomainEventEnvelope> = {},
): DomainEventEnvelope[] {
  return Array.from({ length: count }, (_, index) => newEvent({ payload: { index }, ...fields }));
}

export function idsOf(events: readonly { readonly eventId: string }[]): string[] {
  return events.map(({ eventId }) => eventId);
}

/** The ids that the stream shows, oldest first. */
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

/** A subscription under a case's control: it reads on only as far as the case asks. */
export interface Follower extends AsyncDisposable {
  /** All events so far. */
  readonly events: readonly RecordedEvent[];
  next(): Promise<FeedItem>;
  /** The items up to the first one that fits, this one included. */
  until(fits: (item: FeedItem) => boolean): Promise<FeedItem[]>;
  caughtUp(): Promise<FeedItem[]>;
  /** All events, once there are so many. */
  count(atLeast: number): Promise<readonly RecordedEvent[]>;
  /** All events before this one, once it is there: what is missing then is lost, not late. */
  before(eventId: string): Promise<readonly RecordedEvent[]>;
  /** Waits for a proper end. */
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
      const place = (): number => events.findLastIndex((event) => event.eventId === eventId);
      while (place() === -1) await next();
      return events.slice(0, place());
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

/** Lets messages and timers have their turn: some engines read without ever leaving the thread. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function assertAscending(values: readonly (string | number)[]): void {
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    assert.ok(before === undefined || before < value, `${before} does not come before ${value}`);
  }
}

/** Every stream's events are there from revision 0 on, in order, once. */
export function assertDense(events: readonly RecordedEvent[]): void {
  const next = new Map<string, number>();
  for (const { stream, revision } of events) {
    assert.equal(revision, next.get(stream) ?? 0, `of stream ${stream}`);
    next.set(stream, revision + 1);
  }
}

/** The only item of a list that must have one. */
export function only<T>(items: readonly T[]): T {
  assert.equal(items.length, 1);
  return items[0] as T;
}

/** The last item of a list that must not be empty. */
export function last<T>(items: readonly T[]): T {
  assert.ok(items.length > 0, 'the list is empty');
  return items.at(-1) as T;
}
