// Jobs of queue mode: their content and ids, and the names of their queues. A job holds ids only: the ledger has the
// messages, so a queue may lose jobs, and if it delivers a job twice, the ledger rejects the second claim.

import { decodeJobId, encodeJobId } from '../contracts/redis-keys.ts';
import { checkQueueName } from '../work/queue-name.ts';
import type { Job, NewJob, WorkQueue } from '../work/work-queue.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';

/** What the queue dispatcher and its workers have in common; must be the same in all processes. */
export interface DeliveryQueueOptions {
  readonly queue: WorkQueue;
  /** Prefix of the names of all queues; its hash tag puts them in one slot of a cluster. Default: `mq:{outbox}`. */
  readonly prefix?: string | undefined;
  /** Whether each tenant of an integration type has a separate queue. Default: false. */
  readonly perTenant?: boolean | undefined;
}

/** Throws `JOB_INVALID` for an invalid prefix. */
export function deliveryQueueSettings(options: DeliveryQueueOptions) {
  const { queue, prefix = 'mq:{outbox}', perTenant = false } = options;
  checkQueueName(`${prefix}:${start}*`);
  return { queue, prefix, perTenant };
}

export interface DeliveryJob extends Pick<
  ClaimedMessage,
  'correlationId' | 'eventType' | 'integrationType' | 'tenantId' | 'token'
> {
  readonly outboxId: string;
}

export function toNewJob(message: ClaimedMessage): NewJob {
  const { id: outboxId, token, attempts, eventType, tenantId, correlationId } = message;
  const attempt = attempts + 1;
  return {
    id: deliveryJobId({ outboxId, attempt, token }),
    name: eventType,
    data: { outboxId, attempt, token, tenantId, correlationId },
    removeOnComplete: 0,
    removeOnFail: 100,
  };
}

/** Undefined: another program put it there. */
export function fromJob({ queue, name: eventType, data }: Job): DeliveryJob | undefined {
  const { outboxId, token, tenantId, correlationId } = (data ?? {}) as Partial<
    Record<keyof DeliveryJob, unknown>
  >;
  const address = parseDeliveryQueueName(queue.slice(queue.lastIndexOf(':') + 1));
  if (typeof outboxId !== 'string' || typeof token !== 'string' || address === undefined) {
    return undefined;
  }
  return {
    outboxId,
    token,
    integrationType: address.integrationType,
    eventType,
    tenantId: textOf(tenantId),
    correlationId: textOf(correlationId),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/**
 * One for each claim: a message that is claimed again after its lease expired has the same attempt number, and
 * must not be mistaken for the lost job.
 */
export function deliveryJobId(job: {
  readonly outboxId: string;
  /** The first is 1. */
  readonly attempt: number;
  readonly token: string;
}): string {
  return encodeJobId(`outbox:${job.outboxId}:${job.attempt}:${job.token}`);
}

export function claimOfJobId(jobId: string): OutboxClaim | undefined {
  const [, id, token] = /^outbox:([^:]+):\d+:(.+)$/s.exec(decodeJobId(jobId)) ?? [];
  return id === undefined || token === undefined ? undefined : { id, token };
}

export interface DeliveryAddress {
  readonly integrationType: string;
  readonly tenantId?: string | undefined;
}

/** A colon becomes a tilde, because BullMQ rejects it in queue names; other characters with a meaning are escaped. */
const start = 'outbox-';

/**
 * `outbox-webhook~partner-x`; per tenant `outbox-webhook~partner-x@core`. `parseDeliveryQueueName` reverses it. A `*`
 * stays a `*`, so a pattern of types becomes a pattern of queues.
 */
export function deliveryQueueName(
  { integrationType, tenantId = '' }: DeliveryAddress,
  perTenant: boolean,
): string {
  return `${start}${encode(integrationType)}${perTenant ? `@${encode(tenantId)}` : ''}`;
}

export function parseDeliveryQueueName(name: string): DeliveryAddress | undefined {
  if (!name.startsWith(start)) return undefined;
  const [type = '', tenant = ''] = name.slice(start.length).split('@');
  return { integrationType: decode(type), tenantId: tenant === '' ? undefined : decode(tenant) };
}

function encode(text: string): string {
  return encodeJobId(text).replaceAll('@', '%40').replaceAll('{', '%7B').replaceAll('}', '%7D');
}

function decode(text: string): string {
  return decodeJobId(text.replaceAll('%7D', '}').replaceAll('%7B', '{').replaceAll('%40', '@'));
}
