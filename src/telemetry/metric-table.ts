// All metrics of the product. A metric that is not in the table is not exposed; a test compares `docs/telemetry.md`, the
// dashboard and the alert rules with it.

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Other attributes are ignored, because each label multiplies the series. */
  readonly labels?: readonly string[] | undefined;
  /** Labels derived from another one at the scrape, off the hot path. */
  readonly derived?: {
    readonly from: string;
    readonly labels: readonly string[];
    readonly of: (value: string) => readonly string[];
  };
  /** Upper bounds, in the unit of the metric's name. */
  readonly buckets?: readonly number[] | undefined;
}

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const define =
  (type: MetricDefinition['type'], buckets?: readonly number[]) =>
  (name: string, help: string, labels?: readonly string[]): MetricDefinition => ({
    name,
    type,
    help,
    labels,
    buckets,
  });
const counter = define('counter');
const gauge = define('gauge');
const seconds = define('histogram', secondsBuckets);
const milliseconds = define(
  'histogram',
  secondsBuckets.map((bound) => bound * 1_000),
);

/** The parts of `<agg>.<action>.v<version>`. */
const eventTypeParts: NonNullable<MetricDefinition['derived']> = {
  from: 'event_type',
  labels: ['agg', 'action', 'version'],
  of(type) {
    const [agg = '', action = '', version = ''] = type.split('.');
    return [agg, action, version.replace(/^v/, '')];
  },
};

const messageLabels = ['integration_type', 'event_type'];

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
  counter('commands_handled_total', 'Commands by outcome.', [
    'bc',
    'aggregate',
    'version',
    'command',
    'tenant',
    'outcome',
  ]),
  counter('command_conflicts_total', 'Commands decided again after a version conflict.', [
    'bc',
    'aggregate',
    'version',
  ]),
  counter('snapshots_taken_total', 'Snapshots of aggregates by outcome.', ['outcome']),
  counter('events_published_total', 'Events appended to the store.', ['event_type']),
  counter('events_duplicates_total', 'Duplicate events of appends.', ['event_type']),
  // Subscriptions.
  {
    ...counter('events_processed_total', 'Handler attempts by result.', [
      'handler',
      'event_type',
      'status',
      'bc',
      'tenant',
    ]),
    derived: eventTypeParts,
  },
  seconds('event_processing_duration_seconds', 'Duration of a handler per event.', [
    'handler',
    'event_type',
  ]),
  gauge(
    'projection_lag_seconds',
    'Age of the oldest event that a subscription has not processed.',
    ['sub'],
  ),
  gauge('dead_letter_queue_size', 'Dead letters waiting for replay or discard.', ['handler']),
  counter('sagas_total', 'Ended sagas by outcome.', ['saga', 'outcome']),
  counter('live_mirror_published_total', 'Events forwarded by the live mirror.'),
  counter(
    'live_mirror_dropped_total',
    'Events dropped by the live mirror because no consumer took them in time.',
  ),
  // The outbox and delivery.
  counter('outbox_enqueued_total', 'Messages enqueued in the outbox.', ['source']),
  gauge('outbox_pending_total', 'Messages in the outbox without an attempt.'),
  counter('outbox_claimed_total', 'Messages claimed for sending.'),
  counter('outbox_jobs_total', 'Messages handed to a queue of workers.', messageLabels),
  counter('outbox_sent_total', 'Sent messages.', messageLabels),
  counter('outbox_failed_total', 'Failed attempts that will be retried.', messageLabels),
  counter('outbox_dead_total', 'Dead-lettered messages.', messageLabels),
  counter(
    'outbox_stale_total',
    'Outcomes reported after another process had claimed the message.',
    messageLabels,
  ),
  counter(
    'outbox_queue_full_total',
    'Messages that stayed in the ledger because their queue was full.',
  ),
  counter('outbox_purged_total', 'Sent messages purged after their retention.'),
  milliseconds('outbox_claim_duration_ms', 'Duration of settling and claiming a batch.'),
  milliseconds('outbox_delivery_duration_ms', 'Duration of a delivery attempt.', [
    ...messageLabels,
    'outcome',
  ]),
  gauge('outbox_messages', 'Messages in the outbox by status.', ['status']),
  gauge('queue_depth', 'Items waiting in a queue.', ['queue']),
  counter(
    'delivery_attempts_total',
    'Delivery attempts by outcome, including those deferred by a limit.',
    ['destination', 'outcome'],
  ),
  seconds('delivery_duration_seconds', 'Response time of a destination.', ['destination']),
  gauge('delivery_breaker_open', '1 while the circuit breaker of a destination is open.', [
    'destination',
  ]),
  // The bus.
  counter('bus_published_total', 'Messages stored in streams of the bus.'),
  counter('bus_duplicates_total', 'Duplicate messages by id.'),
  milliseconds('bus_handler_duration_ms', 'Duration of a handler per message.', ['group']),
  counter('bus_handler_failures_total', 'Failed handler calls.', ['group']),
  counter('bus_dead_letters_total', 'Dead-lettered messages by cause.', ['group', 'cause']),
  counter('bus_malformed_skipped_total', 'Malformed messages skipped by a reader without a group.'),
  counter('bus_consumer_interruptions_total', 'Broker connections lost by consumers.', ['group']),
  counter('bus_consumer_resumes_total', 'Broker connections restored by consumers.', ['group']),
  counter('bus_swept_total', 'Messages removed after their retention.'),
  counter('bus_archived_total', 'Messages archived to cold storage.'),
  gauge('bus_held_back', 'Expired messages kept because a group has not acked them.'),
  // Topics.
  counter('notify_published_total', 'Messages published to topics by this process.'),
  counter('notify_delivered_total', 'Messages of topics delivered to readers by this process.'),
  // Tasks.
  gauge('tasks_jobs', 'Stored jobs by type and state.', ['type', 'state']),
  counter('tasks_enqueued_total', 'Enqueued jobs.', ['type']),
  counter('tasks_duplicates_total', 'Duplicate jobs by key.', ['type']),
  counter('tasks_rejected_total', 'Jobs rejected by a draining type.', ['type']),
  counter('tasks_ended_total', 'Ended jobs by state.', ['type', 'state']),
  seconds('task_duration_seconds', 'Time from enqueueing a job to its terminal state.', [
    'type',
    'state',
  ]),
  milliseconds('task_start_delay_ms', 'Time from due to claimed.', ['type']),
  milliseconds('task_run_duration_ms', 'Duration of a run by outcome.', ['type', 'outcome']),
  counter('tasks_swept_total', 'Running jobs requeued by the sweeper.'),
  counter('tasks_signals_repaired_total', 'Missing signals published again.'),
  counter(
    'tasks_parents_woken_total',
    'Parent jobs woken by the orchestrator after a lost wake-up.',
  ),
  // Servers and engines.
  seconds('http_request_duration_seconds', 'Duration of an HTTP request.', [
    'method',
    'route',
    'status',
  ]),
  counter('kurrent_calls_total', "Calls of KurrentDB's protocol, by gRPC status.", [
    'method',
    'status',
  ]),
  gauge('redis_up', '1 while Redis responds.'),
  // The telemetry of the process.
  gauge('telemetry_collector_up', '1 if the collector returned in time at the last scrape.', [
    'collector',
  ]),
  counter('telemetry_dropped_total', 'Observations beyond a limit or without a declaration.', [
    'reason',
  ]),
  counter('log_lines_dropped_total', 'Log lines dropped because the reader is too slow.'),
  // The process.
  counter('process_cpu_seconds_total', 'CPU time of user and system.'),
  gauge('process_resident_memory_bytes', 'Resident memory.'),
  gauge('process_start_time_seconds', 'Start time of the process, in seconds since 1970.'),
  gauge('nodejs_heap_size_used_bytes', 'Heap in use.'),
  gauge('nodejs_heap_size_total_bytes', 'Heap allocated from the system.'),
  gauge('nodejs_external_memory_bytes', 'Memory of buffers and native objects.'),
  gauge(
    'nodejs_eventloop_lag_p50_seconds',
    'Delay of the event loop since the last scrape, median.',
  ),
  gauge(
    'nodejs_eventloop_lag_p99_seconds',
    'Delay of the event loop since the last scrape, 99th percentile.',
  ),
  gauge(
    'nodejs_eventloop_utilization',
    'Utilisation of the event loop since the last scrape, 0 to 1.',
  ),
  gauge('nodejs_version_info', 'Version of Node.js.', ['version']),
];
