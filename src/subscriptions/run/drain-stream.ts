// Handles the waiting events of one stream in order, each with its own attempts. The remaining events are
// retried later.

import { hasCode } from '../../foundation/error.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { withAttempt } from '../dead-letter.ts';
import { decideRetry } from '../rules/decide-retry.ts';
import type { Settlement, SubscriptionStorage, WaitingEvent } from '../subscription-storage.ts';
import type { LaneItem, LaneWorkOptions } from './lane-work.ts';
import type { ShardRunnerOptions } from './shard-runner.ts';

export interface DrainOptions
  extends
    Pick<ShardRunnerOptions<unknown>, 'fence' | 'observer' | 'store'>,
    Pick<
      LaneWorkOptions,
      'calls' | 'clock' | 'deadLetter' | 'parkedStreams' | 'signal' | 'subscription'
    > {
  readonly storage: Pick<SubscriptionStorage, 'settle' | 'waiting'>;
  readonly isStopping: () => boolean;
  /** The stream is no longer parked; these items arrived during the drain. */
  readonly onReleased: (items: readonly LaneItem[]) => void;
}

/** Events per turn, so that other streams of the lane get a turn. */
const eventsPerTurn = 50;

/** Waiting events have no ticket, because the checkpoint already passed them. */
const noTicket = -1;

export function createDrain(options: DrainOptions): (stream: string) => Promise<boolean> {
  const { store, storage, subscription, fence, clock, parkedStreams, calls, signal } = options;
  const { waiting } = storage;

  /** Returns true to continue with the next event. */
  async function handle(stream: string, row: WaitingEvent): Promise<boolean> {
    const { position, failures } = row;
    const event = await eventOf(stream, row);
    const { eventId } = event ?? row;
    const drained: Settlement = { kind: 'drained', stream, position, eventId, atMs: clock.now() };
    if (event === undefined) {
      options.observer.log?.warn(
        { handler: subscription.name, stream, eventId },
        'waiting event no longer in the store',
      );
      await storage.settle(fence, drained);
      return true;
    }
    const item: LaneItem = { event, ticket: noTicket, failures, history: row.history };
    try {
      await calls.run({ events: [event], attempt: failures + 1, tickets: [], drained });
      return true;
    } catch (error) {
      if (hasCode(error, 'LEASE_LOST')) throw error;
      if (signal.aborted) return false;
      return failed(item, error);
    }
  }

  /** The record of a waiting event whose id is damaged still has its position. */
  async function eventOf(
    stream: string,
    { eventId, position }: WaitingEvent,
  ): Promise<RecordedEvent | undefined> {
    if (eventId !== '') return store.findEvent(stream, eventId);
    for await (const event of store.readStream(stream)) {
      if (event.position === position) return event;
    }
    return undefined;
  }

  async function failed(item: LaneItem, error: unknown): Promise<boolean> {
    const nowMs = clock.now();
    const { event, failures } = item;
    const history = withAttempt(item, error, nowMs);
    const decision = decideRetry(subscription.retry, { error, failures, nowMs });
    if (decision.kind === 'dead-letter') {
      await options.deadLetter({ ...item, history, failures: decision.failures }, error);
      return subscription.onDeadLetter === 'continue';
    }
    const { position, eventId } = event;
    const events = [{ position, eventId, failures: decision.failures, history }];
    await waiting.park(fence, [{ stream: event.stream, due: decision.atMs, events }]);
    return false;
  }

  async function drain(stream: string): Promise<boolean> {
    for (let count = 0; count < eventsPerTurn; count += 1) {
      if (options.isStopping() || signal.aborted) return false;
      const [row] = await waiting.next(fence, stream, 1);
      if (row !== undefined) {
        if (!(await handle(stream, row))) return false;
        parkedStreams.drained(stream, row.position);
        continue;
      }
      const released = await parkedStreams.close(stream);
      if (released === undefined) continue;
      options.onReleased(released);
      return false;
    }
    return true;
  }

  return async (stream) => {
    let hasMore = false;
    try {
      hasMore = await drain(stream);
      return hasMore;
    } catch (error) {
      // The event stays in the database, and the next poll finds it.
      if (hasCode(error, 'STORE_UNAVAILABLE')) return false;
      throw error;
    } finally {
      if (!hasMore) parkedStreams.endDrain(stream);
    }
  };
}
