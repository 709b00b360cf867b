// Validation of the ledger's arguments: throws a typed error before anything is written.

import { cleanText } from '../foundation/error-text.ts';
import { createHash } from 'node:crypto';
import { encodePayload } from '../contracts/json-payload.ts';
import { MillraceError } from '../foundation/error.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxFilter, OutboxPage, OutboxSource } from './outbox-ledger.ts';
import type { EnqueueOutboxProps } from './outbox-message.ts';

/** A validated message, as ledgers store it. */
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
  /** Null: the current time of the database. */
  readonly dueAtMs: number | null;
  readonly maxAttempts: number;
  /** One lane per destination and tenant, so that a backlog of one tenant does not delay another. */
  readonly lane: number;
  /** Hash of destination and ordering key; on a collision two keys merely wait for each other. */
  readonly orderHash: number | null;
}

function toOutboxRow(item: EnqueueOutboxProps, maxAttemptsDefault: number): OutboxRow {
  const { integrationType, tenantId, orderingKey, dueAt } = item;
  const maxAttempts = item.maxAttempts ?? maxAttemptsDefault;
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

export function toOutboxRows(
  items: readonly EnqueueOutboxProps[],
  maxAttemptsDefault: number = limits.maxAttemptsDefault,
): readonly OutboxRow[] {
  if (items.length > limits.enqueueMax) {
    invalid('items', `has ${items.length} messages; the maximum is ${limits.enqueueMax}`);
  }
  return items.map((item) => toOutboxRow(item, maxAttemptsDefault));
}

export function checkClaim(workerId: string, limit: number, leaseMs: number): void {
  text('workerId', workerId, limits.workerIdMax);
  wholeNumber('limit', limit, limits.claimBatchMax);
  wholeNumber('leaseMs', leaseMs, limits.leaseMsMax);
}

/** Validates numeric options of dispatchers and workers. */
export function checkNumbers(numbers: Readonly<Record<string, number>>): void {
  for (const [field, value] of Object.entries(numbers)) {
    if (!Number.isInteger(value) || value < 1) invalid(field, 'must be a positive whole number');
  }
}

/** An error as the ledger stores it: truncated to the column, without characters that databases reject. */
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
  if (strange !== undefined) invalid('ids', `contains '${strange}', which is not a message id`);
}

/** Without sources that no message can have; databases reject some of them. */
export function findableSources(sources: readonly OutboxSource[]): readonly OutboxSource[] {
  if (sources.length > limits.listMax) {
    invalid('sources', `has ${sources.length} events; the maximum is ${limits.listMax}`);
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
  if (!Number.isFinite(ms)) invalid(field, 'must be a valid Date');
  return ms;
}

function json(field: string, value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    invalid(field, 'must be an object');
  }
  return encodePayload(value).json;
}

export function text(field: string, value: string, max: number): void {
  if (typeof value !== 'string' || value === '') invalid(field, 'must be a non-empty string');
  if (value.length > max) invalid(field, `has ${value.length} characters; the maximum is ${max}`);
  if (value.includes('\u0000') || !value.isWellFormed()) {
    invalid(field, 'contains characters that databases reject');
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

/** 48 bits, so that the number is exact in every language. */
function hashOf(first: string, second: string): number {
  return createHash('sha256')
    .update(first)
    .update('\u0000')
    .update(second)
    .digest()
    .readUIntBE(0, 6);
}
