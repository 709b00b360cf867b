// Collectors of metrics that are queried at a scrape: subscription lag, dead letters, outbox and tasks of a platform,
// and figures of the process. Any process can query the engines, including for subscriptions that no process runs.

import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import { subscriptionAdmin, type SubscriptionAdmin } from '../subscriptions/subscription-admin.ts';
import type {
  SubscriptionRoles,
  SubscriptionStorage,
} from '../subscriptions/subscription-storage.ts';
import type { TypeCount } from '../tasks/task-engine.ts';
import type { Collector } from './collect-metrics.ts';
import type { Sample } from './create-metrics.ts';

/** The required parts of a platform; a `Platform` fits. */
export interface CollectedPlatform {
  readonly subscriptions: Pick<SubscriptionAdmin, 'lag' | 'list'>;
  readonly engines: {
    readonly subscriptions: {
      readonly deadLetters: Pick<SubscriptionStorage['deadLetters'], 'count'>;
    };
    readonly outbox?: Pick<OutboxLedger, 'counts'> | undefined;
  };
  /** Returns undefined while tasks are not open, because a scrape opens nothing. */
  readonly taskCounts?: () => Promise<readonly TypeCount[]> | undefined;
  /** The queues that modules use in this process. */
  readonly queueDepths?: () => Promise<
    readonly { readonly queue: string; readonly depth: number }[]
  >;
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
  queueDepths,
}: CollectedPlatform): readonly Collector[] {
  return [
    {
      name: 'subscriptions',
      metrics: ['projection_lag_seconds', 'dead_letter_queue_size'],
      async collect() {
        const samples: Sample[] = [];
        // Sequential, so a scrape uses only one connection of the store. If this takes longer than a scrape, the next
        // scrape returns the result.
        for (const { subscription } of await subscriptions.list()) {
          const { seconds } = await subscriptions.lag(subscription);
          const size = await engines.subscriptions.deadLetters.count({
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
        const counts = await engines.outbox?.counts();
        if (counts === undefined) return [];
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
      name: 'queues',
      metrics: ['queue_depth'],
      async collect() {
        const depths = (await queueDepths?.()) ?? [];
        return depths.map(({ queue, depth }) => ({
          name: 'queue_depth',
          value: depth,
          labels: { queue },
        }));
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

/** The collectors of an outbox without a platform. Undefined `projecting`: it has no subscriptions. */
export function outboxCollectors({
  projecting,
  ledger,
}: {
  readonly projecting: SubscriptionRoles | undefined;
  readonly ledger: Pick<OutboxLedger, 'counts'> | undefined;
}): readonly Collector[] {
  return platformCollectors({
    subscriptions: projecting === undefined ? noSubscriptions : subscriptionAdmin(projecting),
    engines: { subscriptions: projecting?.subscriptions ?? noSubscriptions, outbox: ledger },
  });
}

const noSubscriptions = {
  list: async () => [],
  lag: () => Promise.reject(new TypeError('this process has no subscriptions')),
  deadLetters: { count: async () => 0 },
};

const resolutionMs = 10;

/** Measures time, memory and the event loop of the process until it is disposed. */
export function processCollector(): Collector & Disposable {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let before = performance.eventLoopUtilization();

  function collect(): readonly Sample[] {
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    // The histogram contains whole timer intervals: subtract the resolution.
    const lagOf = (percent: number): number =>
      delay.count === 0 ? 0 : Math.max(0, delay.percentile(percent) / 1e6 - resolutionMs) / 1_000;
    const samples = [
      { name: 'process_cpu_seconds_total', value: (user + system) / 1e6 },
      { name: 'process_resident_memory_bytes', value: memory.rss },
      { name: 'process_start_time_seconds', value: performance.timeOrigin / 1_000 },
      { name: 'nodejs_heap_size_used_bytes', value: memory.heapUsed },
      { name: 'nodejs_heap_size_total_bytes', value: memory.heapTotal },
      { name: 'nodejs_external_memory_bytes', value: memory.external },
      { name: 'nodejs_eventloop_lag_p50_seconds', value: lagOf(50) },
      { name: 'nodejs_eventloop_lag_p99_seconds', value: lagOf(99) },
      { name: 'nodejs_eventloop_utilization', value: utilization },
      { name: 'nodejs_version_info', value: 1, labels: { version: process.version } },
    ];
    delay.reset();
    return samples;
  }

  return {
    name: 'process',
    metrics: collect().map(({ name }) => name),
    collect,
    [Symbol.dispose]: () => void delay.disable(),
  };
}
