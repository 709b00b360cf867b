// The job: a pointer, and nothing else. Its id says which round of which request it stands for, and how often the
// sweeper had to make a new one: a queue that still knows a finished job would ignore the same id.

import { slackAddressing, type SendMessageJob } from 'millrace/contracts';
import type { NewJob } from 'millrace/work';
import type { RequestState } from './message-request.ts';

export interface JobKey {
  readonly tenant: string;
  readonly id: string;
  readonly round: number;
  /** From 1. */
  readonly generation: number;
}

export function jobIdOf({ tenant, id, round, generation }: JobKey): string {
  return `${tenant}.${id}.${round}.${generation}`;
}

/** Of what `:dispatched` holds. */
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
  /** It came with whole objects, as jobs did once: only ids were read. */
  readonly wasEnriched: boolean;
}

/** Also of jobs of before, which carried the request itself, its workspace and more. Undefined: no such job. */
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
