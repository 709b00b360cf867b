// The edge of the ledger: what is refused, by a typed error, before anything is written.

import { cleanText } from '../foundation/error-text.ts';
import { createHash } from 'node:crypto';
import { encodePayload } from '../contracts/json-payload.ts';
import { MillraceError } from '../foundation/error.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxFilter, OutboxPage, OutboxSource } from './outbox-ledger.ts';
import type { EnqueueOutboxProps } from './outbox-message.ts';

/** A checked message, as ledgers write it. */
export interface OutboxRow {
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  readonly integrationType: string;
  readonly eventType: string;
  /** JSON. */
  readonly payload: string;
  readonly headers: string | null;
  readonly tenantId: string | null;
  readonly userId: string | null;
  readonly correlationId: string | null;
  readonly orderingKey: string | null;
  /** Null: now, by the database's clock. */
  readonly dueAtMs: number | null;
  readonly maxAttempts: number;
  /** Destination and tenant share one lane, so that no tenant's backlog stands before another's. */
  readonly lane: number;
  /** Destination and ordering key as one number; two that fall together only wait for each other. */
  readonly orderHash: number | null;
}

function toOutboxRow(item: EnqueueOutboxProps): OutboxRow {
  const { integrationType, tenantId, orderingKey, dueAt } = item;
  const maxAttempts = item.maxAttempts ?? limits.maxAttemptsDefault;
  text('sourceStreamId', item.sourceStreamId, limits.sourceStreamIdMax);
  text('sourceEventId', item.sourceEventId, limits.sourceEventIdMax);
  text('integrationType', integrationType, limits.integrationTypeMax);
  text('eventType', item.eventType, limits.eventTypeMax);
  optionalText('tenantId', tenantId, limits.tenantIdMax);
  optionalText('userId', item.userId, limits.userIdMax);
  optionalText('correlationId', item.correlationId, limits.correlationIdMax);
  optionalText('orderingKey', orderingKey, limits.orderingKeyMax);
  wholeNumber('maxAttempts', maxAttempts, limits.maxAttemptsMax);
  if (dueAt !== undefined) time('dueAt', dueAt);
  const orderHash = orderingKey === undefined ? null : hashOf(integrationType, orderingKey);
  return {
    sourceStreamId: item.sourceStreamId,
    sourceEventId: item.sourceEventId,
    integrationType,
    eventType: item.eventType,
    payload: json('payload', item.payload),
    headers: item.headers === undefined ? null : json('headers', item.headers),
    tenantId: tenantId ?? null,
    userId: item.userId ?? null,
    correlationId: item.correlationId ?? null,
    orderingKey: orderingKey ?? null,
    dueAtMs: dueAt?.getTime() ?? null,
    maxAttempts,
    lane: hashOf(integrationType, tenantId ?? '') % limits.lanes,
    orderHash,
  };
}

export function toOutboxRows(items: readonly EnqueueOutboxProps[]): readonly OutboxRow[] {
  if (items.length > limits.enqueueMax) {
    invalid('items', `has ${items.length} messages, at most ${limits.enqueueMax} go together`);
  }
  return items.map(toOutboxRow);
}

export function checkClaim(workerId: string, limit: number, leaseMs: number): void {
  text('workerId', workerId, limits.workerIdMax);
  wholeNumber('limit', limit, limits.claimBatchMax);
  wholeNumber('leaseMs', leaseMs, limits.leaseMsMax);
}

/** The options of whatever sends. */
export function checkNumbers(numbers: Readonly<Record<string, number>>): void {
  for (const [field, value] of Object.entries(numbers)) {
    if (!Number.isInteger(value) || value < 1) invalid(field, 'must be a whole number from 1 on');
  }
  if (Number(numbers['timeoutMs']) >= Number(numbers['leaseMs'])) {
    invalid('timeoutMs', 'must be below leaseMs');
  }
}

/** An error as the ledger keeps it: as long as the column is meant to be, and such as databases take. */
export function lastErrorText(error: string): string {
  return cleanText(error, limits.lastErrorMax);
}

export function pageLimit(page: OutboxPage | undefined): number {
  const limit = page?.limit ?? limits.listDefault;
  wholeNumber('limit', limit, limits.listMax);
  return limit;
}

export function checkFilter({ ids, since }: OutboxFilter): void {
  if (since !== undefined) time('since', since);
  const strange = ids?.find((id) => !isOutboxId(id));
  if (strange !== undefined) invalid('ids', `holds '${strange}', which is no id of a message`);
}

/** Without those that no message can have: databases would choke on some of them. */
export function findableSources(sources: readonly OutboxSource[]): readonly OutboxSource[] {
  if (sources.length > limits.listMax) {
    invalid('sources', `has ${sources.length} events, at most ${limits.listMax} go together`);
  }
  return sources.filter(
    ({ sourceStreamId, sourceEventId }) =>
      isText(sourceStreamId, limits.sourceStreamIdMax) &&
      isText(sourceEventId, limits.sourceEventIdMax),
  );
}

function isText(value: string, max: number): boolean {
  return value.length <= max && !value.includes('\u0000') && value.isWellFormed();
}

export function isOutboxId(id: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
}

export function time(field: string, value: Date): number {
  const ms = value.getTime();
  if (!Number.isFinite(ms)) invalid(field, 'is no time');
  return ms;
}

function json(field: string, value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    invalid(field, 'must be an object');
  }
  return encodePayload(value).json;
}

export function text(field: string, value: string, max: number): void {
  if (typeof value !== 'string' || value === '') invalid(field, 'must be a text that is not empty');
  if (value.length > max) invalid(field, `has ${value.length} characters, at most ${max} are kept`);
  if (value.includes('\u0000') || !value.isWellFormed()) {
    invalid(field, 'holds characters that databases refuse');
  }
}

function optionalText(field: string, value: string | undefined, max: number): void {
  if (value !== undefined) text(field, value, max);
}

function wholeNumber(field: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 1 || value > max) {
    invalid(field, `must be a whole number from 1 to ${max}`);
  }
}

function invalid(field: string, reason: string): never {
  throw new MillraceError('OUTBOX_INVALID', `${field} ${reason}`, { details: { field } });
}

/** 48 bits: exact in every language that may look at it. */
function hashOf(first: string, second: string): number {
  return createHash('sha256')
    .update(first)
    .update('\u0000')
    .update(second)
    .digest()
    .readUIntBE(0, 6);
}
