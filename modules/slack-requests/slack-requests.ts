// The module: requests, their configuration, the send queue, the workers and the sweeper.

import { createSlackClient } from 'millrace/destinations/slack';
import { slackAddressing } from 'millrace/contracts';
import {
  defineModule,
  type ModuleContext,
  type ModuleService,
  type PlatformModule,
} from 'millrace/platform';
import type { MetricDefinition } from 'millrace/telemetry';
import { createPace } from './channel-pace.ts';
import {
  app,
  appProjection,
  channel,
  channelProjection,
  template,
  templateProjection,
  workspace,
  workspaceProjection,
} from './config.ts';
import { dispatcher } from './dispatcher.ts';
import { requestProjection } from './message-request-projection.ts';
import { messageRequest } from './message-request.ts';
import { createSecretBox, type SecretBox, type SecretKey } from './secret-box.ts';
import { createSendHandler, sendLockMs } from './send-worker.ts';
import { createSweeper } from './sweeper.ts';
import { slackRequestsWeb } from './web/slack-requests-web.ts';

export interface SlackRequestsOptions {
  /** The first key encrypts, all keys decrypt. Without a key, no workspace can be configured. */
  readonly secretKeys?: readonly SecretKey[] | undefined;
  /** Default: `https://slack.com/api/`. */
  readonly apiUrl?: string | undefined;
  readonly concurrency?: number;
  readonly attemptsMax?: number;
  readonly timeoutMs?: number;
  /** How long the lock of a crashed worker blocks a request. Default: 15 minutes. */
  readonly lockMs?: number;
  /** Delay before searching for a message that may have been posted. Default: 30 s. */
  readonly settleMs?: number;
  /** Delay before the second attempt; it doubles up to 5 minutes. Default: 2 s. */
  readonly retryMs?: number;
  readonly channelIntervalMs?: number;
  readonly workspaceIntervalMs?: number;
  readonly sweepIntervalMs?: number;
  /** Age from which the sweeper queues a request without a job again. Default: 1 minute. */
  readonly sweepGraceMs?: number;
  /** Lease of a job; afterwards another process takes it over. Default: 15 s. */
  readonly jobLeaseMs?: number;
}

const slackRequestsDefaults = {
  concurrency: 8,
  attemptsMax: 10,
  timeoutMs: 10_000,
  lockMs: sendLockMs,
  settleMs: 30_000,
  retryMs: 2_000,
  channelIntervalMs: 1_000,
  workspaceIntervalMs: 100,
  sweepIntervalMs: 30_000,
  sweepGraceMs: 60_000,
  /** How long a worker waits for its turn in a channel before it defers the job. */
  waitMaxMs: 3_000,
} as const;

const projections = [
  requestProjection,
  workspaceProjection,
  appProjection,
  channelProjection,
  templateProjection,
];

export function slackRequests(options: SlackRequestsOptions = {}): PlatformModule {
  const { secretKeys = [] } = options;
  const secrets = secretKeys.length === 0 ? undefined : createSecretBox(secretKeys);
  return defineModule({
    name: 'slack-requests',
    uses: ['keys', 'queue'],
    aggregates: [messageRequest, workspace, app, channel, template],
    secrets: { 'slack-workspace': ['token'], 'slack-app': ['signingSecret'] },
    projections,
    subscriptions: (context) => [dispatcher(context)],
    services: (context) => [
      { role: 'workers', start: () => startWorker(context, options, secrets) },
      { role: 'sweepers', start: () => startSweeping(context, options) },
    ],
    web: (context) => slackRequestsWeb(context, { secrets, apiUrl: options.apiUrl }),
  });
}

type Started = Awaited<ReturnType<ModuleService['start']>>;

async function startWorker(
  context: ModuleContext,
  options: SlackRequestsOptions,
  secrets: SecretBox | undefined,
): Promise<Started> {
  const {
    apiUrl,
    jobLeaseMs: leaseMs,
    concurrency,
    ...rules
  } = { ...slackRequestsDefaults, ...options };
  const { clock, observer } = context;
  const keys = await context.keys();
  const queue = await context.workQueue();
  const slack = await createSlackClient({ apiUrl, timeoutMs: rules.timeoutMs, clock });
  const pace = createPace({ keys, clock, waitMaxMs: rules.waitMaxMs });
  const handle = createSendHandler({ context, keys, slack, secrets, pace, rules });
  const stopping = new AbortController();
  const { queueName } = slackAddressing;
  const work = { queues: [queueName], concurrency, leaseMs, signal: stopping.signal };
  const working = queue.work(handle, work);
  working.catch((error: unknown) => {
    observer.log?.error({ queue: queueName, err: error }, 'queue worker failed');
  });
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.allSettled([working]);
      await slack[Symbol.asyncDispose]();
    },
  };
}

async function startSweeping(
  context: ModuleContext,
  options: SlackRequestsOptions,
): Promise<Started> {
  const { sweepIntervalMs, sweepGraceMs: graceMs } = { ...slackRequestsDefaults, ...options };
  const { clock, observer } = context;
  const keys = await context.keys();
  const queue = await context.workQueue();
  const sweep = createSweeper({ context, keys, queue, projections, graceMs });
  const stopping = new AbortController();
  const { signal } = stopping;
  const sweeping = (async () => {
    while (!signal.aborted) {
      try {
        await sweep(signal);
      } catch (error) {
        if (!signal.aborted) observer.log?.warn({ err: error }, 'sweep failed');
      }
      // Rejects only on abort, which ends the loop.
      await clock.sleep(sweepIntervalMs, signal).catch(() => undefined);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await sweeping;
    },
  };
}

/** The metrics of this module, for `createMetrics`. */
export const slackRequestMetrics: readonly MetricDefinition[] = [
  {
    name: 'slack_requests_sent_total',
    type: 'counter',
    help: 'Requests sent to Slack.',
    labels: ['tenant'],
  },
  {
    name: 'slack_requests_failed_total',
    type: 'counter',
    help: 'Failed requests by cause.',
    labels: ['tenant', 'code'],
  },
  {
    name: 'slack_requests_deferred_total',
    type: 'counter',
    help: 'Deferred attempts by cause.',
    labels: ['tenant', 'code'],
  },
  {
    name: 'slack_requests_requeued_total',
    type: 'counter',
    help: 'Requests that the sweeper queued again.',
    labels: ['tenant'],
  },
  {
    name: 'slack_requests_enriched_jobs_total',
    type: 'counter',
    help: 'Jobs in the old format, with embedded objects.',
    labels: ['tenant'],
  },
];
