// All metrics of the product. A metric that is not in the table is not exposed; a test compares `docs/telemetry.md`, the
// dashboard and the alert rules with it.

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Other attributes are ignored, because each label multiplies the series. */
  readonly labels?: readonly string[];
  /** Labels derived from another one at the scrape, off the hot path. */
  readonly derived?: {
    readonly from: string;
    readonly labels: readonly string[];
    readonly of: (value: string) => readonly string[];
  };
  /** Upper bounds, in the unit at the end of the name. */
  readonly buckets?: readonly number[];
}

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const millisecondsBuckets = secondsBuckets.map((seconds) => seconds * 1_000);

/**
 * The metrics of the product; pass yours to `createMetrics` in addition.
 *
 * @example
 * import { createMetrics, metricTable } from 'millrace/telemetry';
 *
 * const metrics = createMetrics({
 *   table: [...metricTable, { name: 'orders_total', type: 'counter', help: 'Orders taken.' }],
 * });
 * metrics.observer.count?.('orders_total', {});
 */
export const metricTable: readonly MetricDefinition[] = [
  // Commands and the store.
  {
    name: 'commands_handled_total',
    type: 'counter',
    help: 'Commands by outcome.',
    labels: ['bc', 'aggregate', 'command', 'tenant', 'outcome'],
  },
  {
    name: 'command_conflicts_total',
    type: 'counter',
    help: 'Commands decided again after a version conflict.',
    labels: ['aggregate'],
  },
  {
    name: 'snapshots_taken_total',
    type: 'counter',
    help: 'Snapshots of aggregates by outcome.',
    labels: ['outcome'],
  },
  {
    name: 'events_published_total',
    type: 'counter',
    help: 'Events appended to the store.',
    labels: ['event_type'],
  },
  {
    name: 'events_duplicates_total',
    type: 'counter',
    help: 'Duplicate events of appends.',
    labels: ['event_type'],
  },
  // Subscriptions.
  {
    name: 'events_processed_total',
    type: 'counter',
    help: 'Handler attempts by result.',
    labels: ['handler', 'event_type', 'status', 'bc', 'tenant'],
    derived: {
      from: 'event_type',
      labels: ['agg', 'action', 'version'],
      of(type) {
        const [agg = '', action = '', version = ''] = type.split('.');
        return [agg, action, version.replace(/^v/, '')];
      },
    },
  },
  {
    name: 'event_processing_duration_seconds',
    type: 'histogram',
    help: 'Duration of a handler per event.',
    labels: ['handler', 'event_type'],
    buckets: secondsBuckets,
  },
  {
    name: 'projection_lag_seconds',
    type: 'gauge',
    help: 'Age of the oldest event that a subscription has not processed.',
    labels: ['sub'],
  },
  {
    name: 'dead_letter_queue_size',
    type: 'gauge',
    help: 'Dead letters waiting for replay or discard.',
    labels: ['handler'],
  },
  {
    name: 'sagas_total',
    type: 'counter',
    help: 'Ended sagas by outcome.',
    labels: ['saga', 'outcome'],
  },
  {
    name: 'live_mirror_published_total',
    type: 'counter',
    help: 'Events forwarded by the live mirror.',
  },
  {
    name: 'live_mirror_dropped_total',
    type: 'counter',
    help: 'Events dropped by the live mirror because no consumer took them in time.',
  },
  // The outbox and delivery.
  {
    name: 'outbox_enqueued_total',
    type: 'counter',
    help: 'Messages enqueued in the outbox.',
    labels: ['source'],
  },
  {
    name: 'outbox_pending_total',
    type: 'gauge',
    help: 'Messages in the outbox without an attempt.',
  },
  { name: 'outbox_claimed_total', type: 'counter', help: 'Messages claimed for sending.' },
  ...(['jobs', 'sent', 'failed', 'dead', 'stale'] as const).map((outcome): MetricDefinition => ({
    name: `outbox_${outcome}_total`,
    type: 'counter',
    help: {
      jobs: 'Messages handed to a queue of workers.',
      sent: 'Sent messages.',
      failed: 'Failed attempts that will be retried.',
      dead: 'Dead-lettered messages.',
      stale: 'Outcomes reported after another process had claimed the message.',
    }[outcome],
    labels: ['integration_type', 'event_type'],
  })),
  {
    name: 'outbox_queue_full_total',
    type: 'counter',
    help: 'Messages that stayed in the ledger because their queue was full.',
  },
  {
    name: 'outbox_purged_total',
    type: 'counter',
    help: 'Sent messages purged after their retention.',
  },
  {
    name: 'outbox_claim_duration_ms',
    type: 'histogram',
    help: 'Duration of settling and claiming a batch.',
    buckets: millisecondsBuckets,
  },
  {
    name: 'outbox_delivery_duration_ms',
    type: 'histogram',
    help: 'Duration of a delivery attempt.',
    labels: ['integration_type', 'event_type', 'outcome'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'outbox_messages',
    type: 'gauge',
    help: 'Messages in the outbox by status.',
    labels: ['status'],
  },
  {
    name: 'queue_depth',
    type: 'gauge',
    help: 'Items waiting in a queue.',
    labels: ['queue'],
  },
  {
    name: 'delivery_attempts_total',
    type: 'counter',
    help: 'Delivery attempts by outcome, including those deferred by a limit.',
    labels: ['destination', 'outcome'],
  },
  {
    name: 'delivery_duration_seconds',
    type: 'histogram',
    help: 'Response time of a destination.',
    labels: ['destination'],
    buckets: secondsBuckets,
  },
  {
    name: 'delivery_breaker_open',
    type: 'gauge',
    help: '1 while the circuit breaker of a destination is open.',
    labels: ['destination'],
  },
  // The bus.
  {
    name: 'bus_published_total',
    type: 'counter',
    help: 'Messages stored in streams of the bus.',
  },
  {
    name: 'bus_duplicates_total',
    type: 'counter',
    help: 'Duplicate messages by id.',
  },
  {
    name: 'bus_handler_duration_ms',
    type: 'histogram',
    help: 'Duration of a handler per message.',
    labels: ['group'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'bus_handler_failures_total',
    type: 'counter',
    help: 'Failed handler calls.',
    labels: ['group'],
  },
  {
    name: 'bus_dead_letters_total',
    type: 'counter',
    help: 'Dead-lettered messages by cause.',
    labels: ['group', 'cause'],
  },
  {
    name: 'bus_malformed_skipped_total',
    type: 'counter',
    help: 'Malformed messages skipped by a reader without a group.',
  },
  {
    name: 'bus_consumer_interruptions_total',
    type: 'counter',
    help: 'Broker connections lost by consumers.',
    labels: ['group'],
  },
  {
    name: 'bus_consumer_resumes_total',
    type: 'counter',
    help: 'Broker connections restored by consumers.',
    labels: ['group'],
  },
  {
    name: 'bus_swept_total',
    type: 'counter',
    help: 'Messages removed after their retention.',
  },
  {
    name: 'bus_archived_total',
    type: 'counter',
    help: 'Messages archived to cold storage.',
  },
  {
    name: 'bus_held_back',
    type: 'gauge',
    help: 'Expired messages kept because a group has not acked them.',
  },
  // Topics.
  {
    name: 'notify_published_total',
    type: 'counter',
    help: 'Messages published to topics by this process.',
  },
  {
    name: 'notify_delivered_total',
    type: 'counter',
    help: 'Messages of topics delivered to readers by this process.',
  },
  // Tasks.
  {
    name: 'tasks_jobs',
    type: 'gauge',
    help: 'Stored jobs by type and state.',
    labels: ['type', 'state'],
  },
  {
    name: 'tasks_enqueued_total',
    type: 'counter',
    help: 'Enqueued jobs.',
    labels: ['type'],
  },
  {
    name: 'tasks_duplicates_total',
    type: 'counter',
    help: 'Duplicate jobs by key.',
    labels: ['type'],
  },
  {
    name: 'tasks_refused_total',
    type: 'counter',
    help: 'Jobs rejected by a draining type.',
    labels: ['type'],
  },
  {
    name: 'tasks_ended_total',
    type: 'counter',
    help: 'Ended jobs by state.',
    labels: ['type', 'state'],
  },
  {
    name: 'task_duration_seconds',
    type: 'histogram',
    help: 'Time from enqueueing a job to its end.',
    labels: ['type', 'state'],
    buckets: secondsBuckets,
  },
  {
    name: 'task_start_delay_ms',
    type: 'histogram',
    help: 'Time from due to claimed.',
    labels: ['type'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'task_run_duration_ms',
    type: 'histogram',
    help: 'Duration of a run by outcome.',
    labels: ['type', 'outcome'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'tasks_swept_total',
    type: 'counter',
    help: 'Running jobs requeued by the sweeper.',
  },
  {
    name: 'tasks_signals_repaired_total',
    type: 'counter',
    help: 'Missing signals published again.',
  },
  {
    name: 'tasks_parents_woken_total',
    type: 'counter',
    help: 'Parent jobs woken by the orchestrator after a lost wake-up.',
  },
  // Servers and engines.
  {
    name: 'http_request_duration_seconds',
    type: 'histogram',
    help: 'Duration of an HTTP request.',
    labels: ['method', 'route', 'status'],
    buckets: secondsBuckets,
  },
  {
    name: 'kurrent_calls_total',
    type: 'counter',
    help: "Calls of KurrentDB's protocol, by gRPC status.",
    labels: ['method', 'status'],
  },
  { name: 'redis_up', type: 'gauge', help: '1 while Redis responds.' },
  // Telemetry itself.
  {
    name: 'telemetry_collector_up',
    type: 'gauge',
    help: '1 if the collector returned in time at the last scrape.',
    labels: ['collector'],
  },
  {
    name: 'telemetry_dropped_total',
    type: 'counter',
    help: 'Observations beyond a limit or without a declaration.',
    labels: ['reason'],
  },
  {
    name: 'log_lines_dropped_total',
    type: 'counter',
    help: 'Log lines dropped because the reader is too slow.',
  },
  // The process.
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of user and system.',
  },
  { name: 'process_resident_memory_bytes', type: 'gauge', help: 'Resident memory.' },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'Start time of the process, in seconds since 1970.',
  },
  { name: 'nodejs_heap_size_used_bytes', type: 'gauge', help: 'Heap in use.' },
  { name: 'nodejs_heap_size_total_bytes', type: 'gauge', help: 'Heap allocated from the system.' },
  {
    name: 'nodejs_external_memory_bytes',
    type: 'gauge',
    help: 'Memory of buffers and native objects.',
  },
  {
    name: 'nodejs_eventloop_lag_p50_seconds',
    type: 'gauge',
    help: 'Delay of the event loop since the last scrape, median.',
  },
  {
    name: 'nodejs_eventloop_lag_p99_seconds',
    type: 'gauge',
    help: 'Delay of the event loop since the last scrape, 99th percentile.',
  },
  {
    name: 'nodejs_eventloop_utilization',
    type: 'gauge',
    help: 'Utilisation of the event loop since the last scrape, 0 to 1.',
  },
  {
    name: 'nodejs_version_info',
    type: 'gauge',
    help: 'Version of Node.js.',
    labels: ['version'],
  },
];
