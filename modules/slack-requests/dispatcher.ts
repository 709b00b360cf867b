// Adds a job for each `message-request.queued.v1`. `:dispatched` is set before the job is added: after a crash in between, the
// event is delivered again, and the sweeper covers every other loss.

import { slackAddressing, type SendMessageJob } from 'millrace/contracts';
import type { ModuleContext } from 'millrace/platform';
import { subscription, type Subscription } from 'millrace/subscriptions';
import type { KeyStore, NewJob } from 'millrace/work';
import { requestCategory } from './fields.ts';
import { requestQueued } from './message-request-events.ts';
import { messageRequest, tagsOf, type RequestState } from './message-request.ts';

type Context = Pick<ModuleContext, 'clock' | 'keys' | 'load' | 'observer' | 'workQueue'>;

/** Longer than any request is open. */
const dispatchedTtlMs = 30 * 86_400_000;

export function dispatcher(context: Context): Subscription {
  const { clock, load, observer } = context;
  return subscription({
    name: 'sub:slack-requests:dispatcher:v1',
    filter: { types: [requestQueued.type], category: requestCategory },
    // A long outage of the queue must not dead-letter every request.
    retry: { initialMs: 500, factor: 2, capMs: 30_000, jitterMs: 500, attemptsMax: 100 },
    async handler({ tenant, aggregate: { id }, payload }) {
      const { round } = requestQueued.parse(payload);
      const { state } = await load(messageRequest, { tenant, id });
      if (state.status !== 'queued' || state.round !== round) return;
      const keys = await context.keys();
      const queue = await context.workQueue();
      const jobId = await markDispatched(keys, { tenant, id, round });
      const job = sendJob({ tenant, id, ...roundOf(jobId) }, state, clock.now());
      await queue.add(slackAddressing.queueName, [job]);
      const tags = { tenant, messageRequestId: id, jobId, ...tagsOf(state) };
      observer.log?.debug(tags, 'request queued');
    },
  });
}

/** The id of the first dispatched job of this round. */
async function markDispatched(
  keys: KeyStore,
  { tenant, id, round }: { readonly tenant: string; readonly id: string; readonly round: number },
): Promise<string> {
  const key = slackAddressing.dispatched(tenant, id);
  const jobId = jobIdOf({ tenant, id, round, generation: 1 });
  const options = { ttlMs: dispatchedTtlMs };
  for (;;) {
    const { value } = await keys.putIfAbsent(key, jobId, options);
    if (roundOf(value).round >= round) return value;
    // The stored job belongs to an earlier round.
    if (await keys.replace(key, { from: value, to: jobId, ...options })) return jobId;
  }
}

/** False: another process has changed the value. */
export function replaceDispatched(
  keys: KeyStore,
  key: string,
  change: { readonly from: string | undefined; readonly to: string },
): Promise<boolean> {
  return keys.replace(key, { ...change, ttlMs: dispatchedTtlMs });
}

// A job contains only the id of its request. The job id contains the round of the request and a generation, which the sweeper
// increments: a queue ignores a new job with the id of a finished one.
export interface JobKey {
  readonly tenant: string;
  readonly id: string;
  readonly round: number;
  /** Counts from 1. */
  readonly generation: number;
}

export function jobIdOf({ tenant, id, round, generation }: JobKey): string {
  return `${tenant}.${id}.${round}.${generation}`;
}

/** Parses the value of `:dispatched`. */
export function roundOf(jobId: string): { readonly round: number; readonly generation: number } {
  const [, round = '0', generation = '0'] = /\.(\d+)\.(\d+)$/.exec(jobId) ?? [];
  return { round: Number(round), generation: Number(generation) };
}

export function sendJob(
  key: JobKey,
  { priority, content, dueAtMs }: Pick<RequestState, 'content' | 'dueAtMs' | 'priority'>,
  nowMs: number,
): NewJob {
  const { tenant, id } = key;
  const threadTs = content?.threadTs;
  const data: SendMessageJob = {
    messageRequestId: id,
    tenant,
    ...(threadTs === undefined ? {} : { threadTs }),
  };
  const delayMs = Math.max(0, dueAtMs - nowMs);
  return {
    id: jobIdOf(key),
    name: slackAddressing.jobName,
    data,
    removeOnComplete: 100,
    removeOnFail: 50,
    ...(priority === undefined ? {} : { priority }),
    ...(delayMs === 0 ? {} : { delayMs }),
  };
}

export interface ReadJob extends SendMessageJob {
  /** The job had the old format with embedded objects, of which only the ids are used. */
  readonly wasEnriched: boolean;
}

/** Reads jobs of the current and of the old format. Undefined: not a send job. */
export function readSendJob(data: unknown): ReadJob | undefined {
  const job = asRecord(data);
  const inside = asRecord(job['messageRequest'] ?? job['request']);
  const messageRequestId = text(job['messageRequestId'] ?? inside['id'] ?? job['id']);
  const tenant = text(job['tenant'] ?? inside['tenant']);
  if (messageRequestId === undefined || tenant === undefined) return undefined;
  const threadTs = text(job['threadTs'] ?? inside['threadTs']);
  const known = new Set(['messageRequestId', 'tenant', 'threadTs']);
  const wasEnriched = Object.keys(job).some((name) => !known.has(name));
  return { messageRequestId, tenant, wasEnriched, ...(threadTs === undefined ? {} : { threadTs }) };
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
