// Jobs of a delivery queue: their content and ids, and the names of the queues. A job holds ids, and the message
// itself only if it is small and the dispatcher is configured for that.

import { decodeJobId, encodeJobId } from '../contracts/redis-keys.ts';
import { matchesGlob } from '../foundation/matches-glob.ts';
import type { DeliveryJob } from './delivery-queue.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';

/** The job in the queue; the queue's name holds its integration type. */
interface JobData {
  readonly outboxId: string;
  readonly attempt: number;
  readonly token: string;
  readonly tenantId?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly message?: object | undefined;
}

export function toDeliveryJob(message: ClaimedMessage, inlineBytesMax: number): DeliveryJob {
  const { id, token, attempts, integrationType, eventType, tenantId, correlationId } = message;
  const isSmall =
    inlineBytesMax > 0 && Buffer.byteLength(JSON.stringify(message)) <= inlineBytesMax;
  return {
    outboxId: id,
    token,
    attempt: attempts + 1,
    integrationType,
    eventType,
    tenantId,
    correlationId,
    message: isSmall ? message : undefined,
  };
}

/**
 * One for each claim: a message that is claimed again after its lease expired has the same attempt number, and
 * must not be mistaken for the lost job.
 */
export function deliveryJobId({
  outboxId,
  attempt,
  token,
}: Pick<DeliveryJob, 'attempt' | 'outboxId' | 'token'>): string {
  return encodeJobId(`outbox:${outboxId}:${attempt}:${token}`);
}

export function claimOfJobId(jobId: string): OutboxClaim | undefined {
  const [, id, token] = /^outbox:([^:]+):\d+:(.+)$/s.exec(decodeJobId(jobId)) ?? [];
  return id === undefined || token === undefined ? undefined : { id, token };
}

export function toJobData({ outboxId, attempt, token, ...more }: DeliveryJob): JobData {
  const { tenantId, correlationId, message } = more;
  return { outboxId, attempt, token, tenantId, correlationId, message };
}

/** Undefined: another program put it there. */
export function fromJobData(
  data: unknown,
  { integrationType, eventType }: Pick<DeliveryJob, 'integrationType' | 'eventType'>,
): DeliveryJob | undefined {
  const { outboxId, attempt, token, tenantId, correlationId, message } = (data ?? {}) as Partial<
    Record<keyof JobData, unknown>
  >;
  if (typeof outboxId !== 'string' || typeof token !== 'string') return undefined;
  return {
    outboxId,
    token,
    attempt: Number(attempt),
    integrationType,
    eventType,
    tenantId: textOf(tenantId),
    correlationId: textOf(correlationId),
    message:
      typeof message === 'object' && message !== null
        ? revived(message as ClaimedMessage)
        : undefined,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** JSON has no dates, and omits undefined fields. */
function revived(message: ClaimedMessage): ClaimedMessage {
  const date = (value: Date | undefined): Date | undefined =>
    value === undefined ? undefined : new Date(value);
  const { headers, tenantId, userId, correlationId, orderingKey, lastError } = message;
  return {
    ...message,
    headers,
    tenantId,
    userId,
    correlationId,
    orderingKey,
    lastError,
    dueAt: new Date(message.dueAt),
    createdAt: new Date(message.createdAt),
    updatedAt: new Date(message.updatedAt),
    lockedAt: date(message.lockedAt),
    lockedBy: message.lockedBy,
    sentAt: date(message.sentAt),
  };
}

export interface DeliveryAddress {
  readonly integrationType: string;
  readonly tenantId?: string | undefined;
}

/** A colon becomes a tilde, because BullMQ rejects it in queue names; other characters with a meaning are escaped. */
const start = 'outbox-';

/** `outbox-webhook~partner-x`; per tenant `outbox-webhook~partner-x@core`. `parseDeliveryQueueName` reverses it. */
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

/** `*` matches any characters. */
export function fitsType(patterns: readonly string[], integrationType: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern, integrationType));
}

export function isPattern(type: string): boolean {
  return type.includes('*');
}

function encode(text: string): string {
  return encodeJobId(text).replaceAll('@', '%40').replaceAll('{', '%7B').replaceAll('}', '%7D');
}

function decode(text: string): string {
  return decodeJobId(text.replaceAll('%7D', '}').replaceAll('%7B', '{').replaceAll('%40', '@'));
}
