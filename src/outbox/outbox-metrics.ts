// Gauges of the ledger, updated periodically. One process per ledger is enough.

import { slept } from '../foundation/async/slept.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { runUntilStopped, type Lifecycle } from '../foundation/lifecycle.ts';
import type { Observer } from '../foundation/observer.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import { outboxLimits as limits } from './outbox-limits.ts';

export interface OutboxMetricsOptions {
  readonly ledger: Pick<OutboxLedger, 'counts'>;
  readonly observer: Observer;
  /** Default: 15 s. Longer while counting is slow: it takes at most a twentieth of the time. */
  readonly intervalMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

const share = 20;

/**
 * Sets the gauges `outbox_pending_total` and, by status, `outbox_messages`.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createOutboxMetrics } from 'millrace/outbox';
 *
 * await using metrics = createOutboxMetrics({
 *   ledger: openMemory().outbox,
 *   observer: { gauge: (name, value, { status }) => console.log(name, status, value) },
 * });
 * await metrics.start();
 */
export function createOutboxMetrics(options: OutboxMetricsOptions): Lifecycle {
  const { ledger, clock = systemClock, intervalMs = limits.metricsIntervalMsDefault } = options;
  const observer = safeObserver(options.observer);

  async function run(signal: AbortSignal): Promise<void> {
    // Without a listener, counting would be wasted.
    if (observer.gauge === undefined) return;
    while (!signal.aborted) {
      const startMs = clock.now();
      try {
        const counts = await ledger.counts();
        observer.gauge('outbox_pending_total', counts.PENDING, {});
        for (const [status, count] of Object.entries(counts)) {
          observer.gauge('outbox_messages', count, { status });
        }
      } catch (err) {
        observer.log?.warn({ source: 'outbox-metrics', err }, 'outbox could not be counted');
      }
      const tookMs = clock.now() - startMs;
      await slept(clock, Math.max(intervalMs, tookMs * share), signal);
    }
  }

  return runUntilStopped(run);
}
