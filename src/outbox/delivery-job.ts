// What travels through a queue: ids, and the message itself only where it is small and the dispatcher was
// told to send it along.

import { decodeJobId, encodeJobId } from '../contracts/redis-keys.ts';
import type { DeliveryJob } from './delivery-queue.ts';
import type { ClaimedMessage, OutboxClaim } from './outbox-message.ts';

/** As it lies in the queue; its type is the queue's. */
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
    ...(isSmall ? { message } : {}),
  };
}

/**
 * One for each claim: a message that is claimed again after its lease ran out has the same attempt ahead, and
 * must not be taken for the job that was lost.
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

/** Undefined: somebody else put it there. */
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
    tenantId: text(tenantId),
    correlationId: text(correlationId),
    ...(typeof message === 'object' && message !== null
      ? { message: revived(message as ClaimedMessage) }
      : {}),
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** JSON has no dates, and leaves out what is undefined. */
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
