// Runs one shard while its lease lasts: reads events from the checkpoint on, passes them to the lanes,
// and writes the checkpoint.

import type { Clock } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import type { IdSource } from '../../foundation/ids.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { ResolveTenant } from '../../store/stream-owners.ts';
import { startPosition, type Position } from '../../store/position.ts';
import { newDeadLetter } from '../dead-letter.ts';
import { createCheckpointTracker } from '../rules/checkpoint-tracker.ts';
import type { AddedDeadLetter, Fence, SubscriptionStorage } from '../subscription-storage.ts';
import type { Subscription } from '../subscription.ts';
import { createCheckpointWriter } from './checkpoint-writer.ts';
import { slept } from '../../foundation/async/slept.ts';
import { createDrain } from './drain-stream.ts';
import { createHandlerCalls } from './handler-call.ts';
import { createParkedStreams } from './parked-streams.ts';
import { createLaneWork, type LaneItem } from './lane-work.ts';
import { observeHandler } from './observe-handler.ts';
import type { SharedFeed } from './shared-feed.ts';

export interface RunnerTuning {
  /** Number of events between checkpoints. */
  readonly checkpointEvery: number;
  /** Maximum delay of a checkpoint. */
  readonly checkpointMs: number;
  readonly pollMs: number;
  readonly drainMs: number;
  readonly windowMax: number;
  readonly pageSize: number;
}

export interface ShardRunnerOptions<Transaction> {
  readonly store: EventStore;
  readonly feed: SharedFeed;
  readonly storage: SubscriptionStorage<Transaction>;
  readonly subscription: Subscription<Transaction>;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly observer: Observer;
  readonly tuning: RunnerTuning;
  readonly resolveTenant: ResolveTenant | undefined;
  readonly onDeadLetter: (added: AddedDeadLetter) => void;
  /** The position changed, so waiters should check again. */
  readonly onProgress: () => void;
}

export interface ShardStatus {
  readonly shard: number;
  /** All events up to this position are processed. */
  readonly position: Position | undefined;
  readonly inFlight: number;
  /** Number of streams whose events wait in the database. */
  readonly parkedStreams: number;
  readonly isLive: boolean;
}

export interface ShardRunner {
  readonly status: ShardStatus;
  /** Resolves after `stop`; rejects with the error that ended the shard, for example `LEASE_LOST`. */
  readonly ended: Promise<void>;
  /** Waits for running handlers, then writes the checkpoint. */
  stop(): Promise<void>;
  /** Ends the shard without waiting or writing, because the lease is lost. */
  abandon(reason: unknown): void;
  /** Checks now for events that are due for a retry. */
  poll(): void;
}

const dueMax = 100;

export function runShard<Transaction>(options: ShardRunnerOptions<Transaction>): ShardRunner {
  const { store, storage, subscription, fence, clock, observer, tuning } = options;
  const { inFlightMax } = subscription;
  const ended = Promise.withResolvers<void>();
  // Avoid an unhandled rejection; the owner handles `ended`.
  ended.promise.catch(() => undefined);
  /** Aborts everything, including handlers. */
  const ending = new AbortController();
  /** Aborts only the reader. */
  const reading = new AbortController();
  let tracker = createCheckpointTracker();
  let done = new Set<Position>();
  let inFlight = 0;
  let isLive = false;
  let resumeReader: (() => void) | undefined;
  let stopping: Promise<void> | undefined;

  const fail = (error: unknown): void => {
    ending.abort(error);
    reading.abort(error);
    wakeReader();
    writer.stop();
    ended.reject(error);
  };

  const wakeReader = (): void => {
    resumeReader?.();
    resumeReader = undefined;
  };

  const settled = (item: LaneItem): void => {
    tracker.done(item.ticket);
    inFlight -= 1;
    writer.note();
    if (inFlight <= inFlightMax / 2) wakeReader();
    options.onProgress();
  };

  const parkedStreams = createParkedStreams({ fence, waiting: storage.waiting, onStored: settled });
  const calls = observeHandler(
    createHandlerCalls(subscription, storage, {
      fence,
      signal: ending.signal,
      clock,
      carry: (tickets) => writer.carry(tickets),
      resolveTenant: options.resolveTenant,
    }),
    { handler: subscription.name, clock, observer },
  );
  const deadLetter = async (item: LaneItem, error: unknown): Promise<void> => {
    const { failures, history, event } = item;
    const isParked = subscription.onDeadLetter === 'park';
    const added = await storage.deadLetters.add(
      fence,
      newDeadLetter(event, {
        id: options.ids.next(),
        handler: subscription.name,
        shard: fence.shard,
        parked: isParked,
        error,
        attempts: failures,
        history,
        nowMs: clock.now(),
      }),
    );
    if (isParked) parkedStreams.add(event.stream);
    options.onDeadLetter(added);
  };
  const lanes = createLaneWork({
    subscription: subscription as Subscription,
    calls,
    clock,
    signal: ending.signal,
    parkedStreams,
    onDone: settled,
    onFailed({ event, failures }, err) {
      // The runner logs an unavailable database once, not per event.
      if (hasCode(err, 'STORE_UNAVAILABLE') && err.retryable) return;
      observer.log?.warn(
        {
          handler: subscription.name,
          stream: event.stream,
          eventId: event.eventId,
          eventType: event.type,
          tenant: event.tenant,
          correlationId: event.correlationId,
          attempt: failures + 1,
          err,
        },
        'event handler failed',
      );
    },
    onParked: () => {
      writer.note();
      wakeReader();
    },
    deadLetter,
    drain: createDrain({
      store,
      storage,
      subscription: subscription as Subscription,
      fence,
      clock,
      observer,
      parkedStreams,
      calls,
      deadLetter,
      signal: ending.signal,
      isStopping: () => stopping !== undefined,
      onReleased: (items) => lanes.takeFirst(items),
    }),
    fail,
  });
  const writer = createCheckpointWriter({
    clock,
    signal: ending.signal,
    every: tuning.checkpointEvery,
    afterMs: tuning.checkpointMs,
    position: () => tracker.position,
    positionWith: (tickets) => tracker.positionWith(tickets),
    beforeSave: () => parkedStreams.flush(),
    save: (position) => storage.checkpoints.save(fence, position),
    onFailure: (error) => {
      if (hasCode(error, 'STORE_UNAVAILABLE')) return;
      fail(error);
    },
  });

  async function read(): Promise<void> {
    const progress = await storage.checkpoints.load(fence);
    const after = progress.position ?? (await firstPosition());
    tracker = createCheckpointTracker(after);
    done = new Set(progress.done);
    for (const stream of progress.blocked) parkedStreams.add(stream);
    options.onProgress();
    void pollRegularly();
    for await (const item of options.feed.read({
      shard: fence.shard,
      after,
      signal: reading.signal,
    })) {
      if (reading.signal.aborted) return;
      if (item.kind === 'events') for (const event of item.events) dispatch(event);
      if (item.kind === 'caughtUp') isLive = true;
      if (item.kind === 'fellBehind') isLive = false;
      tracker.pass(item.position);
      if (tracker.isIdle) writer.note();
      options.onProgress();
      if (inFlight >= inFlightMax || tracker.size >= tuning.windowMax) await waitForRoom();
    }
  }

  /** Stores the start position of a new subscription, so that `end` means the same after a restart. */
  async function firstPosition(): Promise<Position> {
    const { from } = subscription;
    const position = from === 'start' ? startPosition : from === 'end' ? await store.head() : from;
    await storage.checkpoints.save(fence, position);
    return position;
  }

  function dispatch(event: LaneItem['event']): void {
    // The previous owner processed this event, but its checkpoint was below it.
    if (done.size > 0 && done.delete(event.position)) {
      tracker.pass(event.position);
      return;
    }
    inFlight += 1;
    const ticket = tracker.add(event.position);
    lanes.take({ event, ticket, failures: 0, history: [] });
  }

  /** Waits for free capacity. Events that wait for a retry move to the database to free it. */
  async function waitForRoom(): Promise<void> {
    while (
      !reading.signal.aborted &&
      (inFlight >= inFlightMax || tracker.size >= tuning.windowMax)
    ) {
      const isCrowded =
        lanes.parkedCount + parkedStreams.buffered >= inFlightMax / 2 ||
        (tracker.size >= tuning.windowMax && lanes.parkedCount > 0);
      if (isCrowded) {
        lanes.spill();
        await parkedStreams.flush();
        continue;
      }
      await new Promise<void>((resolve) => {
        resumeReader = resolve;
      });
    }
  }

  async function pollRegularly(): Promise<void> {
    do {
      await poll();
    } while (await slept(clock, tuning.pollMs, reading.signal));
  }

  async function poll(): Promise<void> {
    try {
      const due = await storage.waiting.due(fence, clock.now(), dueMax);
      if (reading.signal.aborted) return;
      for (const stream of due) if (parkedStreams.beginDrain(stream)) lanes.drain(stream);
    } catch (err) {
      // Poll again later; the reader and the checkpoints report an unavailable database.
      if (!hasCode(err, 'STORE_UNAVAILABLE')) fail(err);
    }
  }

  async function stopAndSave(): Promise<void> {
    reading.abort();
    wakeReader();
    await Promise.race([lanes.stop(), stopDeadline()]);
    if (!ending.signal.aborted) await writer.finish();
    ending.abort(new Error('stopped'));
    writer.stop();
    ended.resolve();
  }

  /** Aborts handlers that do not end in time; their events are read again. */
  async function stopDeadline(): Promise<void> {
    const isLate = await slept(clock, tuning.drainMs, ending.signal);
    if (isLate) ending.abort(new Error('stopped'));
  }

  const running = read().catch((error: unknown) => {
    if (!reading.signal.aborted) fail(error);
  });

  return {
    get status() {
      return {
        shard: fence.shard,
        position: tracker.position,
        inFlight,
        parkedStreams: parkedStreams.size,
        isLive: isLive && tracker.isIdle,
      };
    },
    ended: ended.promise,
    stop: () =>
      (stopping ??= stopAndSave()
        .catch(fail)
        .then(() => running)),
    abandon: fail,
    poll: () => void poll(),
  };
}
