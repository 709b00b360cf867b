// What the module counts, for `createMetrics`: beside the product's own table.

import type { MetricDefinition } from 'millrace/telemetry';

export const slackRequestMetrics: readonly MetricDefinition[] = [
  {
    name: 'slack_requests_sent_total',
    type: 'counter',
    help: 'Requests that Slack has.',
    labels: ['tenant'],
  },
  {
    name: 'slack_requests_failed_total',
    type: 'counter',
    help: 'Requests that failed, by why.',
    labels: ['tenant', 'code'],
  },
  {
    name: 'slack_requests_deferred_total',
    type: 'counter',
    help: 'Attempts that are followed by another one, by why.',
    labels: ['tenant', 'code'],
  },
  {
    name: 'slack_requests_requeued_total',
    type: 'counter',
    help: 'Requests that the sweeper found without anybody at them.',
    labels: ['tenant'],
  },
  {
    name: 'slack_requests_enriched_jobs_total',
    type: 'counter',
    help: 'Jobs of before, with whole objects in them.',
    labels: ['tenant'],
  },
];
