// What a platform's engines are asked for at a scrape: how far subscriptions are behind, what is dead, and
// what waits to leave. From any process, so that it is also known of what nobody runs.

import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { SubscriptionAdmin } from '../subscriptions/subscription-admin.ts';
import type { SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import type { TypeCount } from '../tasks/task-engine.ts';
import type { Collector } from './collect-metrics.ts';
import type { Sample } from './create-metrics.ts';

/** The parts of a platform that are asked; a `Platform` fits. */
export interface CollectedPlatform {
  readonly subscriptions: Pick<SubscriptionAdmin, 'lag' | 'list'>;
  readonly engines: {
    readonly storage: { readonly deadLetters: Pick<SubscriptionStorage['deadLetters'], 'count'> };
    readonly ledger: Pick<OutboxLedger, 'counts'>;
  };
  /** Undefined while nobody uses tasks: a scrape opens nothing. */
  readonly taskCounts?: () => Promise<readonly TypeCount[]> | undefined;
}

/**
 * The collectors of a platform, for `createTelemetry`.
 *
 * @example
 * import { createPlatform } from 'millrace/platform';
 * import { createTelemetry, platformCollectors } from 'millrace/telemetry';
 *
 * await using telemetry = await createTelemetry();
 * await using platform = await createPlatform({ observer: telemetry.observer });
 * telemetry.collect(platformCollectors(platform));
 * console.log(await telemetry.metrics());
 */
export function platformCollectors({
  subscriptions,
  engines,
  taskCounts,
}: CollectedPlatform): readonly Collector[] {
  return [
    {
      name: 'subscriptions',
      metrics: ['projection_lag_seconds', 'dead_letter_queue_size'],
      async collect() {
        const samples: Sample[] = [];
        // One after the other: a scrape takes one of the store's connections, not all of them. Where
        // there are so many that it takes longer than a scrape, the next one has the answer.
        for (const { subscription } of await subscriptions.list()) {
          const { seconds } = await subscriptions.lag(subscription);
          const size = await engines.storage.deadLetters.count({
            handler: subscription,
            status: 'pending',
          });
          samples.push(
            { name: 'projection_lag_seconds', value: seconds, labels: { sub: subscription } },
            { name: 'dead_letter_queue_size', value: size, labels: { handler: subscription } },
          );
        }
        return samples;
      },
    },
    {
      name: 'outbox',
      metrics: ['outbox_messages', 'outbox_pending_total', 'queue_depth'],
      async collect() {
        const counts = await engines.ledger.counts();
        const waiting = counts.PENDING + counts.FAILED;
        return [
          ...Object.entries(counts).map(([status, value]) => ({
            name: 'outbox_messages',
            value,
            labels: { status },
          })),
          { name: 'outbox_pending_total', value: counts.PENDING },
          { name: 'queue_depth', value: waiting, labels: { queue: 'outbox' } },
        ];
      },
    },
    {
      name: 'tasks',
      metrics: ['tasks_jobs'],
      async collect() {
        const counts = (await taskCounts?.()) ?? [];
        return counts.flatMap(({ type, states }) =>
          Object.entries(states).map(([state, value]) => ({
            name: 'tasks_jobs',
            value,
            labels: { type, state },
          })),
        );
      },
    },
  ];
}
