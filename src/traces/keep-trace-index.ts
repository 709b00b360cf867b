// Fills the index: a subscription to everything, which appends never wait for.

import { systemClock, type Clock } from '../foundation/clock.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { slept } from '../subscriptions/deadline.ts';
import { subscription, type Subscription } from '../subscriptions/subscription.ts';
import type { TraceEntry, TraceIndex } from './trace-index.ts';

export const traceSubscriptionName = 'sub:millrace:traces:v1';

export interface TraceSubscriptionOptions {
  /** Older events are not worth a row that is swept at once. */
  readonly notBeforeMs?: (() => number) | undefined;
  /** How long a small batch waits for more: those who append have the database meanwhile. Default: 50. */
  readonly lingerMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

const batchSize = 5_000;
const lingerMsDefault = 50;

/**
 * The subscription that fills an index. Its rows go before its checkpoint and are recognised when they
 * come again: a crash between the two costs a repeat that changes nothing.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { startSubscription } from 'millrace/subscriptions';
 * import { traceSubscription } from 'millrace/traces';
 *
 * await using store = memoryEventStore();
 * await using runner = await startSubscription(store, traceSubscription(store.traces));
 * await runner.whenCaughtUp();
 */
export function traceSubscription(
  index: TraceIndex,
  options: TraceSubscriptionOptions = {},
): Subscription {
  const { notBeforeMs = () => 0, lingerMs = lingerMsDefault, clock = systemClock } = options;
  return subscription({
    name: traceSubscriptionName,
    // One lane: few large writes instead of many small ones; their order does not matter.
    lanes: 1,
    batchSize,
    inFlightMax: 2 * batchSize,
    async batchHandler(events, { signal }) {
      // What is appended meanwhile goes together with the next batch.
      if (events.length < batchSize) await slept(clock, lingerMs, signal);
      const fromMs = notBeforeMs();
      const entries = events.flatMap(entriesOf);
      await index.add(entries.filter(({ recordedAtMs }) => recordedAtMs >= fromMs));
    },
  });
}

/** Stores with open names take envelopes of any shape: what has no flow is in none. */
function entriesOf(event: RecordedEvent): readonly TraceEntry[] {
  const { correlationId, position, tenant, stream, revision, recordedAt } = event;
  if (!isIndexable(correlationId) || !isIndexable(stream)) return [];
  return [
    {
      correlationId,
      position,
      tenant: isIndexable(tenant) ? tenant : '',
      stream,
      revision,
      recordedAtMs: Date.parse(recordedAt),
    },
  ];
}

/** Databases refuse some texts, and one of these must not stop the index for ever. */
export function isIndexable(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= 1_000 &&
    !text.includes('\u0000') &&
    text.isWellFormed()
  );
}
