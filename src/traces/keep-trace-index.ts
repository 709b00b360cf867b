// Fills the trace index: a subscription to all events, which never delays appends.

import { systemClock } from '../foundation/clock.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { slept } from '../foundation/async/slept.ts';
import { subscription, type Subscription } from '../subscriptions/subscription.ts';
import type { TraceEntry, TraceIndex } from './trace-index.ts';

export const traceSubscriptionName = 'sub:millrace:traces:v1';

export interface TraceSubscriptionOptions {
  /** Events recorded before this time are not indexed, because they would be swept immediately. */
  readonly notBeforeMs?: (() => number) | undefined;
}

const batchSize = 5_000;
/** How long a small batch waits for more events, to write less often. */
const lingerMs = 50;

/**
 * The subscription that fills an index. Rows are written before the checkpoint, and duplicate rows are
 * ignored, so a crash between the two changes nothing.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { startSubscription } from 'millrace/subscriptions';
 * import { traceSubscription } from 'millrace/traces';
 *
 * await using db = openMemory();
 * await using runner = await startSubscription(db, traceSubscription(db.traces));
 * await runner.whenCaughtUp();
 */
export function traceSubscription(
  index: TraceIndex,
  { notBeforeMs = () => 0 }: TraceSubscriptionOptions = {},
): Subscription {
  return subscription({
    name: traceSubscriptionName,
    // One lane gives few large writes instead of many small ones.
    lanes: 1,
    batchSize,
    inFlightMax: 2 * batchSize,
    async batchHandler(events, { signal }) {
      // Events appended during the wait are part of the next batch.
      if (events.length < batchSize) await slept(systemClock, lingerMs, signal);
      const fromMs = notBeforeMs();
      const entries = events.flatMap(entriesOf);
      await index.add(entries.filter(({ recordedAtMs }) => recordedAtMs >= fromMs));
    },
  });
}

/** Stores with open names accept envelopes of any shape: events without a valid flow are skipped. */
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

/** Databases reject some strings, and one such string must not block the index. */
export function isIndexable(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= 1_000 &&
    !text.includes('\u0000') &&
    text.isWellFormed()
  );
}
