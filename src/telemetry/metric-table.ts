// Every metric of the product, by the names of its documents. What is not in the table is not exposed;
// `docs/telemetry.md`, the dashboard and the alert rules are checked against it.

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Attributes of other names are left out: each label multiplies the series. */
  readonly labels?: readonly string[];
  /** Labels that follow from another one: worked out at the scrape, not when something is counted. */
  readonly derived?: {
    readonly from: string;
    readonly labels: readonly string[];
    readonly of: (value: string) => readonly string[];
  };
  /** Upper bounds, in the unit that the name ends with. */
  readonly buckets?: readonly number[];
}

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const millisecondsBuckets = secondsBuckets.map((seconds) => seconds * 1_000);

/**
 * The product's own metrics; `createMetrics` takes yours beside them.
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
    help: 'Commands by what became of them.',
    labels: ['bc', 'aggregate', 'command', 'tenant', 'outcome'],
  },
  {
    name: 'command_conflicts_total',
    type: 'counter',
    help: 'Commands that were decided again because another writer came first.',
    labels: ['aggregate'],
  },
  {
    name: 'snapshots_taken_total',
    type: 'counter',
    help: 'Snapshots of aggregates, by what became of them.',
    labels: ['outcome'],
  },
  {
    name: 'events_published_total',
    type: 'counter',
    help: 'Events appended to the store; from there on every subscription has them.',
    labels: ['event_type'],
  },
  {
    name: 'events_repeated_total',
    type: 'counter',
    help: 'Events that an append repeated, and that were there already.',
    labels: ['event_type'],
  },
  // Subscriptions.
  {
    name: 'events_processed_total',
    type: 'counter',
    help: 'Attempts of handlers, by their result.',
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
    help: 'How long a handler took for an event.',
    labels: ['handler', 'event_type'],
    buckets: secondsBuckets,
  },
  {
    name: 'projection_lag_seconds',
    type: 'gauge',
    help: 'Age of the oldest event that a subscription has not done yet.',
    labels: ['sub'],
  },
  {
    name: 'dead_letter_queue_size',
    type: 'gauge',
    help: 'Dead letters that wait for somebody to replay or discard them.',
    labels: ['handler'],
  },
  {
    name: 'sagas_total',
    type: 'counter',
    help: 'Sagas that came to an end, by how.',
    labels: ['saga', 'outcome'],
  },
  {
    name: 'live_mirror_published_total',
    type: 'counter',
    help: 'Events that the live mirror passed on.',
  },
  {
    name: 'live_mirror_dropped_total',
    type: 'counter',
    help: 'Events that the live mirror let go because nobody took them in time.',
  },
  // The outbox and delivery.
  {
    name: 'outbox_enqueued_total',
    type: 'counter',
    help: 'Messages put into the outbox.',
    labels: ['source'],
  },
  {
    name: 'outbox_pending_total',
    type: 'gauge',
    help: 'Messages in the outbox that were not tried yet.',
  },
  { name: 'outbox_claimed_total', type: 'counter', help: 'Messages taken out to be sent.' },
  ...(['jobs', 'sent', 'failed', 'dead', 'stale'] as const).map((outcome): MetricDefinition => ({
    name: `outbox_${outcome}_total`,
    type: 'counter',
    help: {
      jobs: 'Messages handed to a queue, for workers to send.',
      sent: 'Messages that were sent.',
      failed: 'Attempts that failed and will be made again.',
      dead: 'Messages given up.',
      stale: 'Outcomes that came after another process had taken the message over.',
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
    help: 'Sent messages that were forgotten after their time.',
  },
  {
    name: 'outbox_claim_duration_ms',
    type: 'histogram',
    help: 'How long it took to settle and claim a batch.',
    buckets: millisecondsBuckets,
  },
  {
    name: 'outbox_delivery_duration_ms',
    type: 'histogram',
    help: 'How long an attempt to send a message took.',
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
    help: 'What waits in a queue for a worker.',
    labels: ['queue'],
  },
  {
    name: 'delivery_attempts_total',
    type: 'counter',
    help: 'Attempts to deliver, by outcome; those that had to wait for their turn included.',
    labels: ['destination', 'outcome'],
  },
  {
    name: 'delivery_duration_seconds',
    type: 'histogram',
    help: 'How long a destination took to answer.',
    labels: ['destination'],
    buckets: secondsBuckets,
  },
  {
    name: 'delivery_breaker_open',
    type: 'gauge',
    help: '1 while a destination is left alone because it fails.',
    labels: ['destination'],
  },
  // The bus.
  {
    name: 'bus_published_total',
    type: 'counter',
    help: 'Messages that were stored in streams of the bus.',
  },
  {
    name: 'bus_duplicates_total',
    type: 'counter',
    help: 'Messages whose id was there already.',
  },
  {
    name: 'bus_handler_duration_ms',
    type: 'histogram',
    help: 'How long a handler took for a message.',
    labels: ['group'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'bus_handler_failures_total',
    type: 'counter',
    help: 'Handlers that threw.',
    labels: ['group'],
  },
  {
    name: 'bus_dead_letters_total',
    type: 'counter',
    help: 'Messages that a group gave up, by their cause.',
    labels: ['group', 'cause'],
  },
  {
    name: 'bus_malformed_skipped_total',
    type: 'counter',
    help: 'Malformed messages that a reader without a group went past.',
  },
  {
    name: 'bus_consumer_interruptions_total',
    type: 'counter',
    help: 'Consumers that lost their broker.',
    labels: ['group'],
  },
  {
    name: 'bus_consumer_resumes_total',
    type: 'counter',
    help: 'Consumers that found their broker again.',
    labels: ['group'],
  },
  {
    name: 'bus_swept_total',
    type: 'counter',
    help: 'Messages that were removed after their time.',
  },
  {
    name: 'bus_archived_total',
    type: 'counter',
    help: 'Messages that went to cold storage.',
  },
  {
    name: 'bus_held_back',
    type: 'gauge',
    help: 'Messages whose time is over and that a group has not acked.',
  },
  // Topics.
  {
    name: 'notify_published_total',
    type: 'counter',
    help: 'Messages that were published to topics here.',
  },
  {
    name: 'notify_delivered_total',
    type: 'counter',
    help: 'Messages of topics that readers here were given.',
  },
  // Tasks.
  {
    name: 'tasks_jobs',
    type: 'gauge',
    help: 'Jobs that are kept, by type and state.',
    labels: ['type', 'state'],
  },
  {
    name: 'tasks_enqueued_total',
    type: 'counter',
    help: 'Jobs that were enqueued.',
    labels: ['type'],
  },
  {
    name: 'tasks_duplicates_total',
    type: 'counter',
    help: 'Jobs whose key was there already.',
    labels: ['type'],
  },
  {
    name: 'tasks_refused_total',
    type: 'counter',
    help: 'Jobs that a drained type did not take.',
    labels: ['type'],
  },
  {
    name: 'tasks_ended_total',
    type: 'counter',
    help: 'Jobs that have ended, by how.',
    labels: ['type', 'state'],
  },
  {
    name: 'task_duration_seconds',
    type: 'histogram',
    help: 'From the enqueueing of a job to its end.',
    labels: ['type', 'state'],
    buckets: secondsBuckets,
  },
  {
    name: 'task_start_delay_ms',
    type: 'histogram',
    help: 'How long after it was due a job was claimed.',
    labels: ['type'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'task_run_duration_ms',
    type: 'histogram',
    help: 'How long a worker had a job, by what became of the run.',
    labels: ['type', 'outcome'],
    buckets: millisecondsBuckets,
  },
  {
    name: 'tasks_swept_total',
    type: 'counter',
    help: 'Running jobs that were taken from their worker.',
  },
  {
    name: 'tasks_signals_repaired_total',
    type: 'counter',
    help: 'Signals that were missing in their stream and stored again.',
  },
  {
    name: 'tasks_parents_woken_total',
    type: 'counter',
    help: 'Parents that the orchestrator woke, as whoever ended their last child had not.',
  },
  // Servers and engines.
  {
    name: 'http_request_duration_seconds',
    type: 'histogram',
    help: 'How long an HTTP request took.',
    labels: ['method', 'route', 'status'],
    buckets: secondsBuckets,
  },
  {
    name: 'kurrent_calls_total',
    type: 'counter',
    help: "Calls of KurrentDB's protocol, by gRPC status.",
    labels: ['method', 'status'],
  },
  { name: 'redis_up', type: 'gauge', help: '1 while Redis answers.' },
  // Telemetry itself.
  {
    name: 'telemetry_collector_up',
    type: 'gauge',
    help: '1 when a collector answered in time at the last scrape.',
    labels: ['collector'],
  },
  {
    name: 'telemetry_dropped_total',
    type: 'counter',
    help: 'Observations without a place of their own: what would have gone past a limit, or is not declared.',
    labels: ['reason'],
  },
  {
    name: 'log_lines_dropped_total',
    type: 'counter',
    help: 'Log lines let go because whoever reads them is too slow.',
  },
  // The process.
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of user and system.',
  },
  { name: 'process_resident_memory_bytes', type: 'gauge', help: 'Memory held in RAM.' },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'When the process started, in seconds since 1970.',
  },
  { name: 'nodejs_heap_size_used_bytes', type: 'gauge', help: 'Heap in use.' },
  { name: 'nodejs_heap_size_total_bytes', type: 'gauge', help: 'Heap taken from the system.' },
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
    help: 'Share of time that the event loop was busy since the last scrape, 0 to 1.',
  },
  {
    name: 'nodejs_version_info',
    type: 'gauge',
    help: 'The version of Node.js.',
    labels: ['version'],
  },
];
