// Reads a flow by its correlation id: index entries, events, their handlers and deliveries, then the tree.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { slept } from '../foundation/async/slept.ts';
import type { EventReader, EventStore, PageLoading } from '../store/event-store.ts';
import type { SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import { isIndexable } from './keep-trace-index.ts';
import { readHandlers } from './read-handlers.ts';
import type { TracedEvent, TracedLetter, TracedMessage, TracedWork } from './trace-node.ts';
import type { TraceEntry, TraceIndex } from './trace-index.ts';
import { buildTraceTree, traceLimits as limits, type TraceTree } from './trace-tree.ts';

export interface Trace extends TraceTree {
  readonly correlationId: string;
  /** False: the index had not caught up with the store at the time of the request. */
  readonly complete: boolean;
  /** Number of indexed events that the store no longer returns. */
  readonly missing: number;
}

export interface TraceOptions {
  /** Restricts the flow to this tenant. */
  readonly tenant?: string | undefined;
  /** How long to wait for the index to catch up. Default: 2 s; 0: no wait. */
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called around each read of events, messages or jobs, whose payloads may be large. */
  readonly aroundLoad?: PageLoading | undefined;
}

export interface Traces {
  /** An unknown correlation id returns a trace without nodes. */
  get(correlationId: string, options?: TraceOptions): Promise<Trace>;
  /** The indexed events of a flow by position, without reading them. */
  entries(
    correlationId: string,
    options: TraceOptions & { readonly limit: number },
  ): Promise<{ readonly entries: readonly TraceEntry[]; readonly complete: boolean }>;
}

export interface TraceSources {
  readonly store: EventStore;
  readonly storage: SubscriptionStorage;
  readonly index: TraceIndex;
  /** The outbox messages of these events. */
  readonly messagesOf: (
    sources: readonly { readonly sourceStreamId: string; readonly sourceEventId: string }[],
    limit: number,
  ) => Promise<readonly TracedMessage[]>;
  /** Resolves when the index has caught up with the store; rejects when aborted. */
  readonly whenIndexed: (signal: AbortSignal) => Promise<void>;
  /** Jobs, messages of topics and sagas of the flow. */
  readonly workOf?: ((flow: TracedFlow) => Promise<TracedWork>) | undefined;
  readonly clock?: Clock | undefined;
}

export interface TracedFlow {
  readonly correlationId: string;
  readonly tenant: string | undefined;
  /** By position. */
  readonly events: readonly TracedEvent[];
  readonly signal: AbortSignal | undefined;
}

const waitMsDefault = 2_000;
/** Events of a stream with a smaller gap are read in one query. */
const gapMax = 50;
/** Events per query, and the maximum number of results per query. */
const eventsPerQuery = 20;
const resultsMax = 1_000;
const readsAtOnce = 8;

/**
 * Creates the reader of flows.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { startSubscription } from 'millrace/subscriptions';
 * import { createTraces, traceSubscription } from 'millrace/traces';
 *
 * await using db = openMemory();
 * await using runner = await startSubscription(db, traceSubscription(db.traces));
 * const traces = createTraces({
 *   store: db.store,
 *   storage: db.subscriptions,
 *   index: db.traces,
 *   messagesOf: async () => [],
 *   whenIndexed: (signal) => runner.whenCaughtUp(signal),
 * });
 * const { nodes, complete } = await traces.get('request-1');
 */
export function createTraces(sources: TraceSources): Traces {
  const { store, storage, index, messagesOf, clock = systemClock } = sources;

  const lettersOf = (events: readonly TracedEvent[]): Promise<Found<TracedLetter>> => {
    // Event ids are unique only within a stream.
    const streams = new Set(events.map(({ stream }) => stream));
    return inChunks(
      events.filter(({ eventId }) => isIndexable(eventId)),
      async (some, limit) => {
        const eventIds = some.map(({ eventId }) => eventId);
        const found = await storage.deadLetters.list(
          { eventIds },
          { limit, withoutPayloads: true },
        );
        return found.filter(({ stream }) => streams.has(stream));
      },
    );
  };

  const allMessagesOf = (
    events: readonly TracedEvent[],
    aroundLoad: PageLoading,
  ): Promise<Found<TracedMessage>> =>
    inChunks(events, (some, limit) =>
      aroundLoad(() =>
        messagesOf(
          some.map(({ stream, eventId }) => ({ sourceStreamId: stream, sourceEventId: eventId })),
          limit,
        ),
      ),
    );

  const find: Traces['entries'] = async (
    correlationId,
    { tenant, limit, waitMs = waitMsDefault, signal },
  ) => {
    const complete = await waitForIndex(sources.whenIndexed, { clock, waitMs, signal });
    const query = { tenant, limit };
    return {
      entries: isIndexable(correlationId) ? await index.find(correlationId, query) : [],
      complete,
    };
  };

  return {
    entries: find,
    async get(correlationId, options = {}) {
      const { tenant, signal, aroundLoad = (load) => load() } = options;
      const { entries: found, complete } = await find(correlationId, {
        ...options,
        limit: limits.eventsMax + 1,
      });
      const entries = found.slice(0, limits.eventsMax);
      const isOwn = (event: TracedEvent): boolean =>
        event.correlationId === correlationId && (tenant === undefined || event.tenant === tenant);
      const events = (await readEvents(store, entries, { signal, aroundLoad }))
        .filter(isOwn)
        .toSorted((a, b) => (a.position < b.position ? -1 : 1));
      const [handlers, letters, messages, work] = await Promise.all([
        readHandlers(storage, events),
        lettersOf(events),
        allMessagesOf(events, aroundLoad),
        aroundLoad(async () => sources.workOf?.({ correlationId, tenant, events, signal })),
      ]);
      const tree = buildTraceTree({
        events,
        handlers,
        letters: letters.found,
        // A message may name a different tenant than its event.
        messages: messages.found.filter(
          ({ tenantId }) => tenant === undefined || tenantId === tenant,
        ),
        work,
      });
      return {
        correlationId,
        complete,
        missing: entries.length - events.length,
        ...tree,
        truncated:
          tree.truncated ||
          found.length > entries.length ||
          letters.isCut ||
          messages.isCut ||
          work?.isCut === true,
      };
    },
  };
}

interface Found<Item> {
  readonly found: readonly Item[];
  /** There may be more results. */
  readonly isCut: boolean;
}

async function inChunks<Item>(
  events: readonly TracedEvent[],
  query: (some: readonly TracedEvent[], limit: number) => Promise<readonly Item[]>,
): Promise<Found<Item>> {
  const results: (readonly Item[])[] = [];
  for (const some of chunksOf(events, eventsPerQuery)) results.push(await query(some, resultsMax));
  return { found: results.flat(), isCut: results.some(({ length }) => length >= resultsMax) };
}

/** False: the index did not catch up in time. */
async function waitForIndex(
  whenIndexed: TraceSources['whenIndexed'],
  options: {
    readonly clock: Clock;
    readonly waitMs: number;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<boolean> {
  const { clock, waitMs, signal } = options;
  signal?.throwIfAborted();
  const ending = new AbortController();
  const ended = AbortSignal.any([ending.signal, ...(signal === undefined ? [] : [signal])]);
  const reached = whenIndexed(ended).then(
    () => true,
    (error: unknown) => {
      if (ended.aborted) return false;
      throw error;
    },
  );
  const late = slept(clock, waitMs, ended).then(() => false);
  const isCaughtUp = await Promise.race([reached, late]).finally(() => ending.abort());
  signal?.throwIfAborted();
  return isCaughtUp;
}

/** Reads stream by stream, with nearby events in one query. Deleted events are omitted. */
async function readEvents(
  store: EventStore,
  entries: readonly TraceEntry[],
  {
    signal,
    aroundLoad,
  }: { readonly signal: AbortSignal | undefined; readonly aroundLoad: PageLoading },
): Promise<readonly TracedEvent[]> {
  const wanted = new Set(entries.map(({ position }) => position));
  const runs = [...Map.groupBy(entries, ({ stream }) => stream)].flatMap(([stream, own]) =>
    runsOf(own.map(({ revision }) => revision)).map((run) => ({ stream, ...run })),
  );
  const events: TracedEvent[] = [];
  for (const some of chunksOf(runs, readsAtOnce)) {
    const read = await Promise.all(
      some.map(({ stream, from, to }) => {
        const range = { from, limit: to - from + 1, signal };
        return aroundLoad(() => visible(store.readStream(stream, range)));
      }),
    );
    events.push(...read.flat().filter(({ position }) => wanted.has(position)));
  }
  return events;
}

/** Payloads are not part of a trace, and may be large. */
async function visible(reader: EventReader): Promise<readonly TracedEvent[]> {
  const events: TracedEvent[] = [];
  try {
    for await (const { payload: _payload, ...event } of reader) events.push(event);
    return events;
  } catch (error) {
    if (hasCode(error, 'STREAM_DELETED')) return [];
    throw error;
  }
}

interface Run {
  readonly from: number;
  readonly to: number;
}

function runsOf(revisions: readonly number[]): readonly Run[] {
  const runs: Run[] = [];
  for (const revision of revisions.toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    const isNear = last !== undefined && revision - last.to <= gapMax;
    const from = isNear ? last.from : revision;
    runs.splice(isNear ? -1 : runs.length, 1, { from, to: revision });
  }
  return runs;
}

function chunksOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, at) => items.slice(at * size, (at + 1) * size));
}
