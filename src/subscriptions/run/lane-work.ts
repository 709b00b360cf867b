// The lanes of a shard process events in order per stream and several streams in parallel. An event that
// waits for a retry parks only the stream of that event; under load, waiting events move to the database.

import type { Clock } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { withAttempt, type Attempt } from '../dead-letter.ts';
import { decideRetry } from '../rules/decide-retry.ts';
import { laneOf } from '../rules/lane-of.ts';
import type { Subscription } from '../subscription.ts';
import { slept } from '../../foundation/async/slept.ts';
import type { HandlerCalls } from './handler-call.ts';
import type { ParkedStreams } from './parked-streams.ts';

/** An event in a lane. */
export interface LaneItem {
  readonly event: RecordedEvent;
  readonly ticket: number;
  readonly failures: number;
  readonly history: readonly Attempt[];
  /** The batch of the event failed, so the event is retried alone to find the cause. */
  readonly alone?: boolean | undefined;
}

/** Events of this stream wait in the database and are due. */
interface DrainEntry {
  readonly drain: string;
}

type LaneEntry = LaneItem | DrainEntry;

interface ParkedItems {
  readonly items: LaneItem[];
  readonly atMs: number;
  /**
   * The database of the handler is unavailable. The events stay in memory and stop the reader; otherwise
   * the whole backlog would move to the waiting events.
   */
  readonly isUnavailable: boolean;
}

interface Lane {
  queue: LaneEntry[];
  head: number;
  /** Processed before the queue. */
  urgent: LaneEntry[];
  isRunning: boolean;
  readonly parked: Map<string, ParkedItems>;
}

export interface LaneWorkOptions {
  readonly subscription: Subscription;
  readonly calls: HandlerCalls;
  readonly clock: Clock;
  /** Aborting this signal stops all lanes. */
  readonly signal: AbortSignal;
  readonly parkedStreams: ParkedStreams;
  /** The event is processed or dead-lettered, so the checkpoint may pass it. */
  readonly onDone: (item: LaneItem) => void;
  readonly onFailed: (item: LaneItem, error: unknown) => void;
  /** One more event waits in memory. */
  readonly onParked: () => void;
  /** Stores the dead letter; rejects if that fails. */
  readonly deadLetter: (item: LaneItem, error: unknown) => Promise<void>;
  /** Handles the waiting events of a stream; returns true if more remain after its turn. */
  readonly drain: (stream: string) => Promise<boolean>;
  /** Ends the shard: the lease is lost, or an internal error occurred. */
  readonly fail: (error: unknown) => void;
}

export interface LaneWork {
  take(item: LaneItem): void;
  /** Puts the items before the queue of their lane. */
  takeFirst(items: readonly LaneItem[]): void;
  drain(stream: string): void;
  /** Number of events in memory that wait for a retry and can move to the database. */
  readonly parkedCount: number;
  /** Moves the parked items to `parkedStreams`, which stores them. */
  spill(): void;
  /** Waits for running handlers and starts no new ones. */
  stop(): Promise<void>;
}

export function createLaneWork(options: LaneWorkOptions): LaneWork {
  const { subscription, calls, clock, signal, parkedStreams } = options;
  const { shards, retry, batchSize } = subscription;
  const lanes = Array.from({ length: subscription.lanes }, (): Lane => ({
    queue: [],
    head: 0,
    urgent: [],
    isRunning: false,
    parked: new Map(),
  }));
  const running = new Set<Promise<void>>();
  let isStopping = false;
  let parkedCount = 0;

  const laneFor = (stream: string): Lane =>
    lanes[laneOf(stream, { shards, lanes: lanes.length })] as Lane;

  function start(lane: Lane): void {
    if (lane.isRunning || isStopping) return;
    lane.isRunning = true;
    const pending = runQueue(lane);
    if (pending === undefined) {
      lane.isRunning = false;
      return;
    }
    const tracked = continueQueue(lane, pending)
      .catch(options.fail)
      .finally(() => {
        lane.isRunning = false;
        running.delete(tracked);
        // Items may have arrived after the lane found its queue empty.
        if (hasWork(lane)) start(lane);
      });
    running.add(tracked);
  }

  async function continueQueue(lane: Lane, first: Promise<void>): Promise<void> {
    let pending: Promise<void> | undefined = first;
    while (pending !== undefined) {
      await pending;
      pending = runQueue(lane);
    }
  }

  /** Runs synchronous handlers without awaiting; undefined when the queue is empty. */
  function runQueue(lane: Lane): Promise<void> | undefined {
    for (;;) {
      if (isStopping || signal.aborted) return undefined;
      const pending = step(lane);
      if (pending === 'empty') return undefined;
      if (pending !== undefined) return pending;
    }
  }

  /** Undefined if the step completed synchronously. */
  function step(lane: Lane): Promise<void> | undefined | 'empty' {
    const first = next(lane);
    if (first === undefined) return 'empty';
    if ('drain' in first) return drain(lane, first.drain);
    if (parkIfNeeded(lane, first)) return undefined;
    if (batchSize === 1 || first.alone === true) return handle(lane, [first]);
    const batch = [first];
    while (batch.length < batchSize) {
      const more = peek(lane);
      if (more === undefined || 'drain' in more || more.alone === true) break;
      next(lane);
      if (!parkIfNeeded(lane, more)) batch.push(more);
    }
    return handle(lane, batch);
  }

  /** Queues the item if its stream is parked. */
  function parkIfNeeded(lane: Lane, item: LaneItem): boolean {
    const parked = lane.parked.get(item.event.stream);
    if (parked !== undefined) {
      parked.items.push(item);
      if (!parked.isUnavailable) parkedCount += 1;
    } else if (!parkedStreams.keep(item)) {
      return false;
    }
    options.onParked();
    return true;
  }

  function handle(lane: Lane, items: readonly LaneItem[]): Promise<void> | undefined {
    const attempt = (items[0]?.failures ?? 0) + 1;
    try {
      const pending = calls.run({
        events: items.map(({ event }) => event),
        attempt,
        tickets: items.map((each) => each.ticket),
      });
      if (pending === undefined) return finished(items);
      return pending.then(
        () => finished(items),
        (error: unknown) => failed(lane, items, error),
      );
    } catch (error) {
      return failed(lane, items, error);
    }
  }

  function finished(items: readonly LaneItem[]): undefined {
    for (const item of items) options.onDone(item);
  }

  async function failed(lane: Lane, items: readonly LaneItem[], error: unknown): Promise<void> {
    if (hasCode(error, 'LEASE_LOST')) throw error;
    // The handler was aborted, so its event is not processed and is read again.
    if (signal.aborted) return;
    const [item] = items;
    if (item === undefined) return;
    const nowMs = clock.now();
    if (isOutage(error)) {
      // No event caused the failure, so the items of each stream stay together.
      for (const each of items) options.onFailed(each, error);
      for (const own of Map.groupBy(items, ({ event }) => event.stream).values()) {
        park(lane, { items: own, atMs: nowMs + retry.initialMs, isUnavailable: true });
      }
      return;
    }
    if (items.length > 1) {
      lane.urgent.unshift(...items.map((each) => ({ ...each, alone: true })));
      return;
    }
    options.onFailed(item, error);
    const decision = decideRetry(retry, { error, failures: item.failures, nowMs });
    const tried = { ...item, history: withAttempt(item, error, nowMs) };
    if (decision.kind === 'retry') {
      const again = { ...tried, failures: decision.failures };
      park(lane, { items: [again], atMs: decision.atMs, isUnavailable: false });
      return;
    }
    try {
      await options.deadLetter({ ...tried, failures: decision.failures }, error);
    } catch (reason) {
      if (!hasCode(reason, 'STORE_UNAVAILABLE')) throw reason;
      // The outage may also have caused the failure, so retry once more before dead-lettering.
      park(lane, { items: [item], atMs: nowMs + retry.initialMs, isUnavailable: true });
      return;
    }
    options.onDone(item);
  }

  function park(lane: Lane, parked: ParkedItems): void {
    const stream = parked.items[0]?.event.stream ?? '';
    lane.parked.set(stream, parked);
    if (!parked.isUnavailable) parkedCount += parked.items.length;
    options.onParked();
    void wakeLater(lane, stream, parked);
  }

  async function wakeLater(lane: Lane, stream: string, parked: ParkedItems): Promise<void> {
    const isDue = await slept(clock, parked.atMs - clock.now(), signal);
    // The events may have moved to the database while this timer ran.
    if (!isDue || lane.parked.get(stream) !== parked) return;
    unpark(lane, stream, parked);
    lane.urgent.unshift(...parked.items);
    start(lane);
  }

  function unpark(
    lane: Lane,
    stream: string,
    { items, isUnavailable: wasUnavailable }: ParkedItems,
  ): void {
    lane.parked.delete(stream);
    if (!wasUnavailable) parkedCount -= items.length;
  }

  async function drain(lane: Lane, stream: string): Promise<void> {
    const hasMore = await options.drain(stream);
    if (hasMore) lane.queue.push({ drain: stream });
  }

  return {
    take(item) {
      const lane = laneFor(item.event.stream);
      lane.queue.push(item);
      start(lane);
    },
    takeFirst(items) {
      const [first] = items;
      if (first === undefined) return;
      const lane = laneFor(first.event.stream);
      lane.urgent.unshift(...items);
      start(lane);
    },
    drain(stream) {
      const lane = laneFor(stream);
      lane.queue.push({ drain: stream });
      start(lane);
    },
    get parkedCount() {
      return parkedCount;
    },
    spill() {
      for (const lane of lanes) {
        for (const [stream, parked] of lane.parked) {
          if (parked.isUnavailable) continue;
          unpark(lane, stream, parked);
          parkedStreams.spill(stream, parked.items, parked.atMs);
        }
      }
    },
    async stop() {
      isStopping = true;
      while (running.size > 0) await Promise.all(running);
    },
  };
}

/** An unavailable database is not a failure of the event. */
function isOutage(error: unknown): boolean {
  return hasCode(error, 'STORE_UNAVAILABLE') && error.retryable;
}

function hasWork(lane: Lane): boolean {
  return lane.urgent.length > 0 || lane.head < lane.queue.length;
}

function peek(lane: Lane): LaneEntry | undefined {
  return lane.urgent[0] ?? lane.queue[lane.head];
}

function next(lane: Lane): LaneEntry | undefined {
  const urgent = lane.urgent.shift();
  if (urgent !== undefined) return urgent;
  const entry = lane.queue[lane.head];
  if (entry === undefined) return undefined;
  lane.head += 1;
  if (lane.head === lane.queue.length) {
    lane.queue = [];
    lane.head = 0;
  } else if (lane.head >= 1_024) {
    lane.queue = lane.queue.slice(lane.head);
    lane.head = 0;
  }
  return entry;
}
